"""Which conditions are judged, and how many chains each gets."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations

from jem_core.bundle import Bundle
from jem_core.condition import Condition
from jem_core.judge import Judge
from jem_core.model import JointEnergyModel
from jem_core.walks import toggle

MOST_VISIBLE = 15  # photographs: attributes that the judge itself can hardly see tell nothing of a sample
RARE = 0.01  # a seen combination has at least this share of the training images
SEEN_PAIRS = 7
TRIPLES = 3
MAIN = 100
MEASURES = ("singles", "seen_pairs", "held_out_pairs", "triples", "held_out_triples")
# Chain steps that about ten minutes on two cores leave for synthesis, by image size after the fold: slow ones make 550
# a second at 32 px.
BUDGET = {32: 300_000, 64: 150_000, 128: 30_000}


@dataclass
class Plan:
    """Conditions by measure, and the chains per condition for each."""

    singles: list[Condition]
    seen_pairs: list[Condition]
    held_out_pairs: list[Condition]
    triples: list[Condition]
    held_out_triples: list[Condition] = field(default_factory=list)  # with a held-out pair in them
    chains: dict[str, int] = field(default_factory=dict)
    free: int = 500  # unconditional chains: fidelity, and the route of a factored model
    variant: int = 10  # chains per pair for each other sampler and start
    visible: list[str] = field(default_factory=list)

    def measures(self) -> dict[str, list[Condition]]:
        return {name: getattr(self, name) for name in MEASURES if getattr(self, name)}

    def total(self, variants: int = 0) -> int:
        """All chains of the plan."""
        main = sum(self.chains[name] * len(found) for name, found in self.measures().items())
        return main + self.free + variants * self.variant * len(self.variant_pairs())

    def plain(self) -> Plan:
        """The same with fewer chains, for noise that does not know the condition."""
        chains = {"singles": self.chains["singles"] // 5} | {
            name: self.chains[name] // 2 for name in MEASURES[1:] if name in self.chains
        }
        return replace(
            self,
            chains={name: max(2, n) for name, n in chains.items()},
            free=0,
            variant=0,
        )

    def variant_pairs(self) -> list[Condition]:
        """A few pairs of either kind, on which samplers and starts are compared."""
        return self.seen_pairs[:3] + self.held_out_pairs[:3]


def budget(model: JointEnergyModel) -> int:
    return BUDGET[max(32, model.image_size // model.fold)]


def make_plan(bundle: Bundle, judge: Judge, samples: int | None = None, variants: int = 0) -> Plan:
    """The default plan: 100 chains per condition where the time allows it; pairs come before single attributes."""
    plan = conditions(bundle, judge)
    if samples is not None:
        plan.chains = dict.fromkeys(plan.measures(), samples)
        plan.free, plan.variant = max(5 * samples, 20), min(10, max(2, samples // 3))
        return plan
    plan.chains = {"singles": MAIN, "seen_pairs": MAIN, "held_out_pairs": MAIN}
    plan.chains |= {"triples": MAIN // 2, "held_out_triples": MAIN // 2}
    room = budget(bundle.model) // bundle.sampling["steps"]
    plan.free = min(plan.free, room // 10)
    for name, least in (("singles", 40), ("seen_pairs", 50), ("held_out_pairs", 50), ("singles", 10)):
        over = plan.total(variants) + plan.plain().total() - room
        if over > 0 and getattr(plan, name):
            fewer = -(-over // len(getattr(plan, name)))
            plan.chains[name] = max(least, (plan.chains[name] - fewer) // 10 * 10)
    return plan


def quick_plan(bundle: Bundle, judge: Judge, samples: int | None = None) -> Plan:
    """Under a minute on one core: fewer conditions, few chains each, nothing else."""
    plan = conditions(bundle, judge)
    plan.seen_pairs, plan.triples, plan.held_out_triples = plan.seen_pairs[:6], [], []
    plan.free = plan.variant = 0
    plan.singles = plan.singles if budget(bundle.model) == max(BUDGET.values()) else plan.singles[:8]
    if samples is None:
        room = budget(bundle.model) // 30 // bundle.sampling["steps"]
        samples = max(2, room // sum(len(found) for found in plan.measures().values()))
    plan.chains = dict.fromkeys(plan.measures(), samples)
    return plan


def conditions(bundle: Bundle, judge: Judge) -> Plan:
    """Single attributes, seen pairs spread over the attributes, all held-out pairs, and a few triples."""
    names = bundle.names
    held_out = [Condition.from_dict(names, pair.as_dict()) for pair in bundle.data.held_out]
    visible = most_visible(bundle, judge)
    seen = spread_out(bundle, visible, 2, SEEN_PAIRS)
    return Plan(
        singles=[Condition.from_lists(names, [name]) for name in visible],
        seen_pairs=seen,
        held_out_pairs=held_out,
        triples=spread_out(bundle, visible, 3, TRIPLES),
        held_out_triples=with_a_third(bundle, visible, held_out),
        visible=list(visible),
    )


def most_visible(bundle: Bundle, judge: Judge) -> tuple[str, ...]:
    """All attributes of drawn data; of photographs the 15 that the judge recognizes best on real held-out images."""
    if bundle.data.drawn:
        return bundle.names
    seen = judge.facts["balanced_accuracy"]
    best = sorted(bundle.names, key=lambda name: -seen[name])[:MOST_VISIBLE]
    return tuple(name for name in bundle.names if name in best)


def with_a_third(bundle: Bundle, names: Sequence[str], pairs: Sequence[Condition]) -> list[Condition]:
    """Held-out pairs, each with one more attribute that training has seen with either of the two, and that takes the
    place of neither."""
    found = []
    for i, pair in enumerate(pairs):
        taken = {
            *pair.required,
            *pair.excluded,
            *(one for name in pair.required for one in bundle.data.instead_of(name)),
        }
        free = [name for name in names if name not in taken]
        for name in free[i:] + free[:i]:  # another one for each pair
            singles = [{known: value == 1} for known, value in zip(pair.names, pair.values, strict=True) if value >= 0]
            seen = [Condition.from_dict(bundle.names, single | {name: True}) for single in singles]
            if min(map(bundle.support.count, seen)) >= RARE / 2 * bundle.support.total:
                found.append(toggle(pair, name, 1))
                break
        if len(found) == TRIPLES:
            break
    return found


def spread_out(bundle: Bundle, names: Sequence[str], size: int, count: int) -> list[Condition]:
    """Combinations of attributes that training has seen often enough, as different from each other as can be.

    Greedy: always the one whose attributes were used least so far, the most frequent among equals.
    """
    support = bundle.support
    table: dict[tuple[str, ...], int] = support.pairs() if size == 2 else support.triples()
    frequent = {combo: n for combo, n in table.items() if set(combo) <= set(names) and n >= RARE * support.total}
    chosen: list[tuple[str, ...]] = []
    used: Counter[str] = Counter()
    while frequent and len(chosen) < count:
        best = min(frequent, key=lambda combo: (sum(used[name] for name in combo), -frequent[combo], combo))
        chosen.append(best)
        used.update(best)
        del frequent[best]
    return [Condition.from_lists(bundle.names, combo) for combo in chosen]


def all_pairs(bundle: Bundle, names: Iterable[str] | None = None) -> list[Condition]:
    """Every pair of attributes, both required: the heat map."""
    return [Condition.from_lists(bundle.names, pair) for pair in combinations(names or bundle.names, 2)]
