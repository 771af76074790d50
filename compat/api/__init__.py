"""The only place of policy: inputs and targets in, reports and plans out."""
