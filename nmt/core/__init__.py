"""What everything stands on: records, configuration structure, errors, devices, seeds, logging."""
