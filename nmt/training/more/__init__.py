"""Features that few trainings use, such as several processes, minimum risk, averages, tables and recovery."""
