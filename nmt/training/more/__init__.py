"""What most trainings do not use: several processes, minimum risk, averages, recovery from lack of memory."""
