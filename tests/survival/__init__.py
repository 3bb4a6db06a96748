"""Whatever happens to the processes: nothing is lost, nothing is doubled, nothing is crossed."""
