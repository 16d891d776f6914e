"""Where every gradient of a training step goes, and what is wrong on its way; needs PyTorch alone.

`python -m gradient_audit train.py` audits a script, `GradientAudit` a block of your own code.
"""

from gradient_audit.audit import GradientAudit, GradientFlowError
from gradient_audit.findings import Finding

__all__ = ["Finding", "GradientAudit", "GradientFlowError"]
