"""Features that few trainings use: several processes, minimum risk, averages, tables, recovery."""
