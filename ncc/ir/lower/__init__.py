"""From a traced kernel to BIR: every op of the kernel languages becomes instructions."""
