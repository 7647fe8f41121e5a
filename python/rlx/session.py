"""Sessions: a model loaded for a device, its specialisations, and runs."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from rlx import _core, live
from rlx.errors import InputError, ModelError
from rlx.options import Options
from rlx.state import State
from rlx.streams import handle_of
from rlx.watch import Watch

if TYPE_CHECKING:
    from rlx.background import RunFuture
    from rlx.profile import Profile

SPECIALISATIONS = 32  # imports that one Session keeps (structural values, ranks, assumptions)


class Session(live.Live):
    """A model compiled for one device; `run` may be called from several threads at once.

    Takes a path, bytes, onnx.ModelProto or binary file object, and the options of
    rlx.options.Options by keyword. Raises ModelError, UnsupportedError or DeviceError.
    Close it (or use it as a context manager) to free its memory at a known time.
    """

    def __init__(self, model: Any, **options: Any):
        self.options = Options.of(**options)
        _core.begin_device(self.options.device)  # a GPU opens while the model is imported
        # Loaded with the first model, and feeds in `run`: with the IR and the importer they take
        # longer to import than all else, and a GPU is then opening.
        from rlx import compiler, feeds, needs
        self._compiler = compiler
        self._opened: Any = None  # the device; a cached_property's lock would be all Sessions'
        self._model = compiler.read(model)
        graph = self._model.graph
        compiler.begin_libraries(self._model, self.options)
        self.inputs = feeds.describe(graph.inputs)
        self.outputs = feeds.describe({n: graph.output_types.get(n) for n in graph.outputs})
        self._lock = threading.RLock()
        self._packs = _core.PackCache()  # packed weights, shared by all specialisations
        self._compiled: OrderedDict[tuple, Any] = OrderedDict()
        self._facts_of: dict[Any, Any] = {}  # of each of them
        self._needs = needs.Needs(graph)
        self._imports, self._closed = 0, False
        self._maps: dict[str, tuple] = {}  # of outputs that are sequences of maps: their keys
        self._current: Any = None  # what explain() and memory_plan() describe
        self._fast: Any = None     # the one executable, when no input decides the program
        self._watch = Watch.of(self)
        try:
            self._current = self._executable(compiler.Facts())
            maps = self._maps or any(p.HasField("map_type") for p in graph.inputs.values())
            self._fast = None if graph.defaults or maps or self._watch else self._current
        except compiler.Specialise as need:
            self._needs.note(need)
        except ModelError:
            if not graph.defaults:  # which may never be used, and need not fit: runs tell
                raise
        self._device  # also where nothing is compiled yet
        if self.options.compile == "aot":
            self.prepare()

    @property
    def _device(self) -> Any:
        if self._opened is None:  # late: it waits for a GPU that opens beside the import
            self._opened = self._make_device()
            self.options.check_force(self._opened)
        return self._opened

    def _make_device(self) -> Any:
        o = self.options
        return _core.make_device(o.device, o.tf32, o.log_fallback, o.weights != "")

    @property
    def device(self) -> str:
        """The device that runs the model, e.g. "cpu"."""
        return self._device.name

    def run(self, inputs: Any, out: dict[str, np.ndarray] | None = None, *,
            state: State | None = None, outputs: str = "host",
            stream: Any = None) -> dict[str, Any]:
        """Runs the model once: output name -> ndarray (list for a sequence, of dicts for one of
        maps; None if absent).

        inputs: dict by name, sequence in the model's order, or the one array. Values may be
        NumPy arrays or anything with DLPack, the array interface or the buffer protocol.
        out: arrays of the right shape and dtype to write outputs to, by name.
        state: keeps growing values between runs, see `state`; other outputs are on the host then.
        On a GPU, inputs may lie there; with outputs="device" results stay there, as DeviceArrays.
        Such a run is put on `stream` (a handle or an object with one; else CUDA's default one),
        may still be going on when this returns, and cannot be part of a capture.
        Raises InputError for a wrong name, dtype, rank or shape, naming it.
        """
        stream, fast = stream if stream is None else handle_of(stream, self.device), self._fast
        if fast is not None and type(inputs) is dict and state is None:
            try:
                return fast.run(inputs, out, None, outputs, stream)
            except (_core.NotArray, _core.Respecialise):
                pass  # the slow way converts, or imports under another assumption
        from rlx import feeds
        given = feeds.normalise(inputs, self._model.graph, self.device != "cpu")
        self._check_open()
        if state is None:
            found = self._settle(given, out, outputs, stream)[2]
            return feeds.with_maps(found, self._maps) if self._maps else found
        if state.session is not self:
            raise InputError("the state belongs to another Session")
        if outputs != "host" or stream is not None:
            raise InputError("a run with a state gives its other outputs on the host, and takes no "
                             "stream")
        return state.run(given, out)

    def prepare(self, inputs: Any = None) -> None:
        """Binds such inputs and compiles what a run of them needs, without running.

        Without inputs: zeros, in which a free first dim is 1, then 2, and other free dims are 16;
        GPU kernels are the same for nearly all other sizes. Raises InputError as `run` does.
        """
        from rlx import ahead
        self._check_open()
        ahead.prepare(self, inputs)

    def run_async(self, inputs: Any, out: dict[str, np.ndarray] | None = None, *,
                  state: State | None = None, outputs: str = "host",
                  stream: Any = None) -> RunFuture:
        """Runs the model on a background thread: a Future of what `run` returns, or awaited.

        Arguments as for `run`, whose outputs or error `result()` gives; leave the arrays alone.
        """
        from rlx import background  # loaded with the first: it takes asyncio
        self._check_open()
        handle = stream if stream is None else handle_of(stream, self.device)
        return background.submit(lambda kept=stream: self.run(  # the stream stays until then
            inputs, out, state=state, outputs=outputs, stream=handle))

    def state(self, pairs: Mapping[str, str], *, axis: int, capacity: int = 256) -> State:
        """A State for a growing past: kept between runs in place, appended to and not copied.

        pairs: input name -> name of the output that continues it, e.g. {"past.0": "present.0"}.
        Both grow along `axis`, as NumPy counts. Passed to `run`, those inputs need not be given
        (they start empty), those outputs are not returned. A plan serves `capacity` steps.
        """
        self._check_open()
        return State(self, pairs, axis, capacity)

    def _settle(self, given: dict[str, Any], out: Any = None, outputs: str = "host",
                stream: int | None = None) -> tuple[Any, Any, dict[str, Any]]:
        """The facts and the executable that hold for these inputs, and the results of a run."""
        denied: frozenset[str] = frozenset()
        while True:
            try:
                facts, made = self._specialise(given, denied)
                return facts, made, self._run(made, facts, given, out, None, outputs, stream)
            except _core.Respecialise as failed:
                if failed.args[0] in denied:
                    raise
                denied |= {failed.args[0]}

    def _run(self, executable: Any, facts: Any, *arguments: Any) -> dict[str, Any]:
        watch = self._watch
        return watch.run(executable, facts, *arguments) if watch else executable.run(*arguments)

    def _specialise(self, given: dict[str, Any], denied: frozenset[str]) -> tuple[Any, Any]:
        """Facts and executable for these inputs, imported anew when the facts are new."""
        with self._lock:
            while True:
                facts = self._needs.facts(given, denied, self._executable)
                try:
                    self._current = self._executable(facts)
                    return facts, self._current
                except self._compiler.Specialise as need:
                    self._needs.note(need)

    @property
    def left_out(self) -> tuple[str, ...]:
        """The passes that are left out."""
        chosen = self.options.device
        return self.options.left_out(chosen if chosen.startswith("cuda") else self.device)

    def _executable(self, facts: Any, outputs: tuple[str, ...] | None = None) -> Any:
        self._check_open()
        key = (facts.key(), outputs)
        found = self._compiled.get(key)
        if found is None:
            program = self._program(facts, outputs, self._model)
            found = self._compiled[key] = self._make(program, facts)
            while len(self._compiled) > SPECIALISATIONS:
                self._facts_of.pop(self._compiled.popitem(last=False)[1])
        self._compiled.move_to_end(key)
        return found

    def _program(self, facts: Any, outputs: tuple[str, ...] | None, model: Any) -> Any:
        return self._compiler.compile_model(model, facts, outputs, self.left_out, self._maps,
                                            self.options.weights,
                                            self._watch and self._watch.compiling())

    def _make(self, program: Any, facts: Any) -> Any:
        made = self._compiler.executable(program, self._device, self._packs, self.options)
        self._imports, self._facts_of[made] = self._imports + 1, facts
        return made

    def update_weights(self, arrays: Mapping[str, Any]) -> None:
        """Gives initializers of the model other values, by name; runs from now on use them.

        Plans and CUDA graphs stay: what was folded, packed or rounded is made again in its place.
        Compiles anew only where a value had decided the program's form or another Session reads
        the GPU's copy. Waits for runs. InputError, and no change, for a wrong name, type or shape.
        """
        from rlx import weights
        self._check_open()
        weights.update(self, arrays)

    def profile(self, inputs: Any, runs: int = 10) -> Profile:
        """Runs the model `runs` times and measures every step; see rlx.Profile.

        inputs: as for `run`. One run before the measured ones binds the shapes and warms up.
        Raises InputError as `run` does.
        """
        from rlx import feeds
        from rlx.profile import Profile
        self._check_open()
        if type(runs) is not int or not 1 <= runs < 2**31:
            raise InputError("a profile needs at least one run, below 2**31 of them", got=runs)
        given = feeds.normalise(inputs, self._model.graph, self.device != "cpu")
        executable = self._settle(given)[1]
        return Profile(self, executable.profile(given, runs), executable.memory_plan())

    def explain(self) -> list[dict[str, Any]]:
        """One row for each node of the last bound plans: ONNX nodes, primitive, rung, reason."""
        return self._described("explain") or []

    def memory_plan(self) -> list[dict[str, Any]]:
        """The last bound plans' arena: values, offset and bytes, first and last node of use."""
        return self._described("memory_plan") or []

    def counters(self) -> dict[str, int]:
        """What has been done so far: imports, plans, stage binds, host calls, runs, bytes."""
        return {"imports": self._imports, **(self._described("counters") or {})}

    def _described(self, what: str) -> Any:
        """`what` of the last bound plans; not beside an update, which changes them."""
        with self._lock:
            self._check_open()
            return None if self._current is None else getattr(self._current, what)()

    def close(self) -> None:
        """Frees compiled programs, arenas and weights; runs afterwards raise InputError."""
        with self._lock:
            self._closed, self._fast, self._current = True, None, None
            self._compiled, self._facts_of = OrderedDict(), {}

    def __repr__(self) -> str:
        return f"<Session {live.place(self)}: {live.short(self.inputs)}>"

    def _check_open(self) -> None:
        if self._closed:
            raise InputError("the Session is closed")

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()
