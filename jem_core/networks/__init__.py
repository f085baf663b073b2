"""The networks that a config can name."""

from jem_core.model import JointEnergyModel
from jem_core.networks.paper import PaperModel
from jem_core.networks.residual import ResidualModel

NETWORKS: dict[str, type[JointEnergyModel]] = {kind.network: kind for kind in (PaperModel, ResidualModel)}


def build_network(facts: dict) -> JointEnergyModel:
    """The network that `config()` described; what says no network is the paper's, as the first format was."""
    facts = dict(facts)
    name = facts.pop("network", PaperModel.network)
    if name not in NETWORKS:
        raise ValueError(f"There is no network {name!r}; choose {' or '.join(NETWORKS)}.")
    return NETWORKS[name](**facts)
