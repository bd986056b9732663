"""Random sequences of changes against a naive model of what stacks promise."""

import asyncio
from collections import defaultdict

import attrs
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from kit import Boom
from thorough import examples

from agentos import Descriptor, EntryState, ExtensionManager, ExtensionPack, HookError, PackEntry
from agentos.stacks.reasons import HOLLOW

IDS = ("x", "y")
SECRETS = ("giphy.apiKey", "github.token")
NAMES = ("a", "b", "c", "d")


@attrs.frozen
class Spec:
    """One descriptor of a generated pack."""

    id: str
    priority: int | None
    wraps: bool
    secret: str | None
    on_by_default: bool


specs = st.builds(
    Spec,
    id=st.sampled_from(IDS),
    priority=st.sampled_from([None, None, -1, 0, 1, 5]),
    wraps=st.booleans(),
    secret=st.sampled_from([None, None, *SECRETS]),
    on_by_default=st.sampled_from([True, True, True, False]),
)
contents = st.lists(specs, min_size=1, max_size=2, unique_by=lambda spec: spec.id)


@attrs.define(eq=False)
class Model:
    """One entry as the naive model sees it."""

    pack: str
    spec: Spec
    sequence: int
    failed: bool = False
    generation: int = 0


class Stacks(RuleBasedStateMachine):
    """Drives a real manager and a model of a few lines side by side."""

    @initialize(
        packs=st.lists(contents, min_size=4, max_size=4), base=st.sampled_from([None, 0, 3]), is_async=st.booleans()
    )
    def start(self, packs, base, is_async):
        self.loop = asyncio.new_event_loop()
        self.specs = dict(zip(NAMES, packs, strict=True))
        self.base = base
        self.is_async = is_async
        self.manager = ExtensionManager()
        self.entries: list[Model] = []
        self.loaded: list[str] = []
        self.disabled: set[str] = set()
        self.overrides: dict[tuple[str, str], dict] = {}
        self.secrets: set[str] = set()
        self.failing: set[tuple[str, str, str]] = set()
        self.sequence = 0
        self.on: dict[tuple[str, str, int], bool] = defaultdict(bool)
        self.generations: dict[str, int] = defaultdict(int)
        self.in_force: set[tuple[str, str]] = set()

    def teardown(self):
        if hasattr(self, "manager"):
            self.run(self.manager.shutdown())
            assert not any(self.on.values())
            self.loop.close()

    def run(self, coroutine):
        return self.loop.run_until_complete(coroutine)

    # -- the pack under test -------------------------------------------------------------------------------------

    def hook(self, what, pack, id, generation):
        key = (pack, id, generation)

        def sync_hook(context):
            if what == "+":
                assert not self.on[key], f"{key} is activated twice"
                if (what, pack, id) in self.failing:
                    raise Boom
                self.on[key] = True
            else:
                assert self.on[key], f"{key} is deactivated without being active"
                self.on[key] = False
                if (what, pack, id) in self.failing:
                    raise Boom

        async def async_hook(context):
            await asyncio.sleep(0)
            sync_hook(context)

        return async_hook if self.is_async else sync_hook

    def factory(self, name):
        def create():
            self.generations[name] += 1
            generation = self.generations[name]
            return ExtensionPack(
                name,
                "1.0",
                [
                    Descriptor(
                        "tool",
                        spec.id,
                        (name, spec.id),
                        priority=spec.priority,
                        wraps=spec.wraps,
                        required_secrets=[spec.secret] if spec.secret else [],
                        enabled_by_default=spec.on_by_default,
                        on_activate=self.hook("+", name, spec.id, generation),
                        on_deactivate=self.hook("-", name, spec.id, generation),
                    )
                    for spec in self.specs[name]
                ],
                on_activate=self.hook("+", name, "", generation),
                on_deactivate=self.hook("-", name, "", generation),
            )

        return PackEntry(factory=create, identifier=name, priority=self.base)

    # -- the naive model -----------------------------------------------------------------------------------------

    def said(self, entry, field):
        for key in (f"{entry.pack}:{entry.spec.id}", entry.spec.id):
            value = self.overrides.get(("tool", key), {}).get(field)
            if value is not None:
                return value
        return None

    def priority(self, entry):
        for value in (self.said(entry, "priority"), entry.spec.priority, self.base):
            if value is not None:
                return value
        return 0

    def eligible(self, entry):
        enabled = self.said(entry, "enabled")
        return (
            entry.pack not in self.disabled
            and (entry.spec.on_by_default if enabled is None else enabled)
            and (entry.spec.secret is None or entry.spec.secret in self.secrets)
            and not entry.failed
        )

    def ranked(self, id):
        mine = [entry for entry in self.entries if entry.spec.id == id]
        return sorted(mine, key=lambda entry: (self.priority(entry), entry.sequence), reverse=True)

    def chain(self, id):
        chain = []
        for entry in self.ranked(id):
            if self.eligible(entry) and (not chain or chain[-1].spec.wraps):
                chain.append(entry)
        return [] if chain and chain[-1].spec.wraps else chain  # what wraps nothing is gated

    def settle(self, must=None):
        """Find who is in force; False if an entry of *must* would fail on the way."""
        for id in IDS:
            while True:
                fresh = [one for one in reversed(self.chain(id)) if not self.is_on(one)]
                bad = next((one for one in fresh if ("+", one.pack, id) in self.failing), None)
                if bad is None:
                    break
                if bad.pack == must:
                    return False
                bad.failed = True
        return True

    def is_on(self, entry):
        return (entry.pack, entry.spec.id, entry.generation) in self.in_force

    def commit(self):
        self.in_force = {(entry.pack, entry.spec.id, entry.generation) for id in IDS for entry in self.chain(id)}

    def retry(self, entries):
        for entry in entries:
            entry.failed = False

    # -- the changes ---------------------------------------------------------------------------------------------

    @rule(what=st.sampled_from("+-"), name=st.sampled_from(NAMES), id=st.sampled_from([*IDS, ""]))
    def toggle_failing_hook(self, what, name, id):
        self.failing ^= {(what, name, id)}

    @rule()
    def heal_all_hooks(self):
        self.failing.clear()

    @rule(name=st.sampled_from(NAMES))
    def break_all_activations(self, name):
        self.failing |= {("+", name, id) for id in IDS}

    @rule(name=st.sampled_from(NAMES))
    def load(self, name):
        outcome = self.run(self.manager.load(self.factory(name)))
        if name in self.loaded:
            assert (outcome.status, outcome.reason) == ("skipped", "already_loaded")
            return
        assert outcome.status == ("loaded" if self.try_to_load(name) else "failed")

    def try_to_load(self, name):
        self.sequence += 1
        if ("+", name, "") in self.failing:
            return False
        new = [Model(name, spec, self.sequence, generation=self.generations[name]) for spec in self.specs[name]]
        self.entries += new
        if not self.settle(must=name):
            self.entries = [entry for entry in self.entries if entry not in new]
            return False
        self.loaded.append(name)
        self.commit()
        return True

    @precondition(lambda self: self.loaded)
    @rule(data=st.data())
    def unload(self, data):
        name = data.draw(st.sampled_from(self.loaded))
        self.run(self.manager.unload(name))
        self.loaded.remove(name)
        self.disabled.discard(name)
        self.entries = [entry for entry in self.entries if entry.pack != name]
        self.settle()
        self.commit()

    @precondition(lambda self: self.loaded)
    @rule(data=st.data(), new=contents)
    def reload(self, data, new):
        name = data.draw(st.sampled_from(self.loaded))
        old_specs, self.specs[name] = self.specs[name], new
        outcome = self.run(self.manager.reload(name))
        old = [entry for entry in self.entries if entry.pack == name]
        others = [entry for entry in self.entries if entry.pack != name]
        worked = name in self.disabled or ("+", name, "") not in self.failing
        if worked:
            generation = self.generations[name]
            self.entries = others + [Model(name, spec, old[0].sequence, generation=generation) for spec in new]
            worked = self.settle(must=name)
        if worked:
            self.commit()
        else:
            self.entries = others + old
            self.specs[name] = old_specs
        assert outcome.status == ("loaded" if worked else "failed")

    @precondition(lambda self: self.loaded)
    @rule(data=st.data())
    def disable(self, data):
        name = data.draw(st.sampled_from(self.loaded))
        self.run(self.manager.disable(name))
        if name not in self.disabled:
            self.disabled.add(name)
            self.retry(entry for entry in self.entries if entry.pack == name)
            self.settle()
            self.commit()

    @precondition(lambda self: self.loaded)
    @rule(data=st.data())
    def enable(self, data):
        name = data.draw(st.sampled_from(self.loaded))
        mine = [entry for entry in self.entries if entry.pack == name]
        if name not in self.disabled:
            self.run(self.manager.enable(name))
            self.retry(mine)
            self.settle()
            self.commit()
            return
        self.disabled.discard(name)
        self.retry(mine)
        if ("+", name, "") not in self.failing and self.settle(must=name):
            self.run(self.manager.enable(name))
            self.commit()
        else:
            self.disabled.add(name)
            with pytest.raises(HookError):
                self.run(self.manager.enable(name))

    @rule(
        pack=st.sampled_from([None, *NAMES]),
        id=st.sampled_from(IDS),
        override=st.one_of(
            st.none(),
            st.fixed_dictionaries({}, optional={"enabled": st.booleans(), "priority": st.integers(-3, 6)}),
        ),
    )
    def override(self, pack, id, override):
        key = f"{pack}:{id}" if pack else id
        self.run(self.manager.set_override("tools", key, override))
        if override is None:
            self.overrides.pop(("tool", key), None)
        else:
            self.overrides[("tool", key)] = override
        self.retry(entry for entry in self.entries if entry.spec.id == id and pack in (None, entry.pack))
        self.settle()
        self.commit()

    @rule(id=st.sampled_from(SECRETS), value=st.sampled_from([None, "value-of-a-secret", "changeme"]))
    def secret(self, id, value):
        self.run(self.manager.set_secret(id, value))
        (self.secrets.add if value and value != "changeme" else self.secrets.discard)(id)
        self.retry(entry for entry in self.entries if entry.spec.secret == id)
        self.settle()
        self.commit()

    # -- what must hold after every step -------------------------------------------------------------------------

    @invariant()
    def active_is_what_the_model_says(self):
        if not hasattr(self, "manager"):
            return
        registry = self.manager.registry("tool")
        for id in IDS:
            chain = self.chain(id)
            active = registry.get_active(id)
            assert (active.payload if active else None) == ((chain[0].pack, id) if chain else None)
            wrapped = [entry.source.pack for entry in registry.stack(id) if entry.state is EntryState.WRAPPED]
            assert wrapped == [entry.pack for entry in chain[1:]]

    @invariant()
    def hooks_ran_for_what_is_in_force_and_nothing_else(self):
        if not hasattr(self, "manager"):
            return
        on = {key for key, is_on in self.on.items() if is_on and key[1]}
        assert on == self.in_force
        packs_on = {key[0] for key, is_on in self.on.items() if is_on and not key[1]}
        assert packs_on == set(self.loaded) - self.disabled

    @invariant()
    def explain_agrees(self):
        if not hasattr(self, "manager"):
            return
        for id in IDS:
            explanation = self.manager.explain("tool", id)
            assert explanation.active == self.manager.registry("tool").get_active(id)
            assert [entry.source.pack for entry in explanation.entries] == [one.pack for one in self.ranked(id)]
            for entry, model in zip(explanation.entries, self.ranked(id), strict=True):
                assert entry.priority == self.priority(model)
                assert (entry.state is EntryState.FAILED) == (model.failed and self.is_failed_state(model))
                assert entry.reason
                assert entry.reason == self.reason(model) or not self.eligible(model)

    def reason(self, model):
        """Say why an eligible entry is in force or not, from a look at the whole stack."""
        ranked, chain = self.ranked(model.spec.id), self.chain(model.spec.id)
        eligible = [one for one in ranked if self.eligible(one)]
        if model not in eligible:
            return None
        if not chain:
            return HOLLOW
        if model is not chain[0]:
            if model in chain:
                return f"wrapped by {chain[chain.index(model) - 1].pack} 1.0, which calls it"
            return f"shadowed by {chain[-1].pack} 1.0: {self.comparison(chain[-1], model)}"
        if len(eligible) > 1:
            return f"strongest of {len(eligible)} eligible entries: {self.comparison(model, eligible[1])}"
        return "the only entry" if len(ranked) == 1 else f"the only eligible entry of {len(ranked)}"

    def comparison(self, winner, loser):
        if self.priority(winner) != self.priority(loser):
            return f"priority {self.priority(winner)} over {self.priority(loser)}"
        return f"registered later at the same priority {self.priority(winner)}"

    def is_failed_state(self, model):
        model_without_failure = attrs.evolve(model, failed=False)
        return self.eligible(model_without_failure)


Stacks.TestCase.settings = settings(max_examples=examples(150), stateful_step_count=40, deadline=None)
TestStacks = Stacks.TestCase
