"""The ledger of a job: what was used, and whether a call may begin. A call that would exceed is not begun."""

from __future__ import annotations

from dataclasses import dataclass, field

from orchestrator.records import Budget, Spend

_ROUNDING = 1e-9


class OutOfBudget(Exception):
    """The next call would exceed the budget; `field` names which part of it."""

    def __init__(self, field: str, used: float, allowed: float) -> None:
        super().__init__(f"budget: {field} {used:g} used of {allowed:g}, the next call would exceed it")
        self.field = field


@dataclass
class Ledger:
    """Adds up spends and refuses calls. Rates seen so far stand in for what a call will cost."""

    allowed: Budget
    used: Spend = field(default_factory=Spend)
    vlm_calls_kept: int = 0  # held back for the final assessment once there is something to assess
    _gpu_rate: float = 0.0  # GPU seconds per video second, the largest seen
    _tokens: int = 0  # tokens of a call, the largest seen

    def add(self, spend: Spend) -> None:
        """Book what a recorded effect cost."""
        self.used = self.used + spend
        if spend.video_seconds > 0:
            self._gpu_rate = max(self._gpu_rate, spend.gpu_seconds / spend.video_seconds)
        if spend.vlm_calls > 0:
            self._tokens = max(self._tokens, spend.vlm_tokens // spend.vlm_calls)

    def afford(
        self, *, video_seconds: float = 0.0, usd: float = 0.0, vlm_calls: int = 0, final: bool = False
    ) -> None:
        """Raise OutOfBudget if this would exceed the budget; `final` may use what was held back."""
        kept = 0 if final else self.vlm_calls_kept
        self._check("video_seconds", self.used.video_seconds + video_seconds, self.allowed.video_seconds)
        gpu = self.used.gpu_seconds + video_seconds * self._gpu_rate
        self._check("gpu_seconds", gpu, self.allowed.gpu_seconds)
        self._check("usd", self.used.usd + usd, self.allowed.usd)
        if vlm_calls:
            self._check("vlm_calls", self.used.vlm_calls + vlm_calls + kept, self.allowed.vlm_calls)
            tokens = self.used.vlm_tokens + (vlm_calls + kept) * self._tokens
            self._check("vlm_tokens", tokens, self.allowed.vlm_tokens)
        self._open("wall_seconds", self.used.wall_seconds, self.allowed.wall_seconds)
        if video_seconds:
            self._open("gpu_seconds", self.used.gpu_seconds, self.allowed.gpu_seconds)

    def _check(self, name: str, would_be: float, allowed: float | None) -> None:
        if allowed is not None and would_be > allowed + _ROUNDING:
            raise OutOfBudget(name, getattr(self.used, name), allowed)

    def _open(self, name: str, used: float, allowed: float | None) -> None:
        """For costs that are only known afterwards: something must be left."""
        if allowed is not None and used >= allowed:
            raise OutOfBudget(name, used, allowed)
