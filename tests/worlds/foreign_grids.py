"""Grid pictures as another project would draw them, with prompts in that project's words.

Shares no code with the product's renderer or its wordings: what it draws and says is known from here alone.
"""

from __future__ import annotations

import io
from dataclasses import dataclass

import numpy as np
from PIL import Image, ImageDraw

from worlds.grid import Cell, GridState
from worlds.world import Frame

RGB = tuple[int, int, int]

FLOORS: list[tuple[str, RGB]] = [
    ("white", (255, 255, 255)),
    ("white", (231, 231, 231)),
    ("white", (248, 248, 240)),
    ("light gray", (211, 211, 211)),
    ("beige", (245, 235, 215)),
    ("pale yellow", (255, 250, 205)),
    ("light blue", (200, 225, 245)),
    ("black", (20, 20, 24)),
    ("dark gray", (60, 60, 64)),
    ("mint", (215, 245, 228)),
    ("lavender", (225, 218, 245)),
    ("pale pink", (250, 224, 230)),
]
WALLS: list[tuple[str, RGB]] = [
    ("light blue", (172, 214, 230)),
    ("gray", (116, 116, 116)),
    ("dark gray", (64, 64, 68)),
    ("black", (12, 12, 14)),
    ("brown", (120, 76, 44)),
    ("navy", (24, 34, 84)),
    ("dark green", (28, 84, 44)),
    ("teal", (18, 118, 118)),
    ("purple", (98, 54, 130)),
    ("slate gray", (100, 116, 132)),
    ("tan", (200, 168, 124)),
    ("maroon", (112, 22, 34)),
]
PIECES: list[tuple[str, RGB]] = [
    ("red", (235, 28, 28)),
    ("blue", (47, 105, 240)),
    ("green", (20, 150, 50)),
    ("lime", (130, 235, 50)),
    ("yellow", (250, 225, 60)),
    ("orange", (250, 140, 20)),
    ("purple", (140, 50, 190)),
    ("magenta", (225, 40, 190)),
    ("cyan", (30, 205, 225)),
    ("pink", (253, 130, 160)),
    ("gold", (225, 180, 40)),
    ("teal", (10, 140, 135)),
]
SAY = {
    "circle": ("circle", "ball", "disc", "dot", "round marker"),
    "square": ("square", "tile", "block"),
    "tile": ("square", "tile", "cell"),
    "star": ("star",),
    "triangle": ("triangle",),
    "diamond": ("diamond",),
}
MAZE = (
    "Create a 2D animation based on the provided image of a maze. The {player} slides smoothly along the "
    "{floor} square "
    "path, stopping perfectly on the {goal}. The {player} never slides or crosses into the {wall} square "
    "areas of the "
    "maze.\n\nMaze:\n The maze paths are {floor} square, the walls are {wall} square.\n The {player} "
    "moves to the goal "
    "position, represented by {goal}.\n\nCamera:\n Static camera.\n No zoom.",
    "Help the {player} find the exit of this labyrinth. The exit is the {goal}. Obstacles are drawn in "
    "{wall} and may "
    "not be crossed; only the {floor} cells are walkable.",
    "Walls: {wall}. Corridors: {floor}. Player: {player}. Destination: {goal}. The player moves to the "
    "destination.",
    "A {player} starts somewhere in a maze made of {wall} blocks. Steer it through the {floor} passages until it "
    "arrives at the {goal}, without ever touching the {wall} walls.",
    "The agent ({player}) must reach the finish ({goal}) while staying on {floor} tiles and avoiding the {wall} "
    "barriers.",
    "Top-down view. {wall} means wall, {floor} means free. Drive the {player} to the {goal}.",
)
TRAP = (
    "Create a 2D animation based on the provided image of a maze. The {player} slides smoothly along the "
    "{floor} square "
    "path, stopping perfectly on the {goal}. The {player} never slides into or crosses the {trap} (trap "
    "areas).\n\n"
    "Maze:\n The maze paths are {floor} square, and the trap areas are {trap}.\n The {player} moves to the goal "
    "position, represented by the {goal}.",
    "Lead the {player} safely to the {goal}. Each {trap} is deadly. {floor} squares are safe to walk on.",
    "Hazards are marked as {trap}. Walk the {player} over the {floor} floor to its home, the {goal}, and "
    "avoid every "
    "hazard.",
    "Hero: {player}. Goal: {goal}. Traps: {trap}. Ground: {floor}. Move the hero to the goal without "
    "stepping on a trap.",
    "The {player} wants to get to the {goal}. It dies if it touches a {trap}, so it has to go around the traps.",
)
SOKOBAN = (
    "Create a 2D animation based on the provided image of a grid puzzle.\nThe {player} moves into "
    "position behind the "
    "{box} and smoothly pushes it toward the {goal}.\nThe {box} only slides when pushed from behind by "
    "the {player} and "
    "moves in a straight line along the {floor} square tiles.\nThe {box} never crosses or overlaps any {wall} "
    "square.\n\nGameplay Rules:\nThe floor area is {floor} square, and the walls are {wall} square.\nThe "
    "{player} cannot "
    "pull the {box} or move through walls.",
    "The {player} is a warehouse worker. Push each crate ({box}) onto a storage place ({goal}). Walls "
    "are {wall}, the "
    "floor is {floor}.",
    "Let the {player} push the {box} onto the {goal}. It may not enter {wall} cells. Free cells are {floor}.",
    "Boxes: {box}. Targets: {goal}. Player: {player}. Walls: {wall}. Floor: {floor}. Push all boxes to "
    "the targets.",
)


@dataclass(frozen=True)
class Foreign:
    """One picture with its prompt, and what it shows."""

    world: str
    frame: Frame
    prompt: str
    state: GridState
    note: str


@dataclass(frozen=True)
class _Ink:
    words: dict[str, str]
    rgb: dict[str, RGB]
    shapes: dict[str, str]


def foreign(world: str, seed: int) -> Foreign:
    """A picture of maze, trapfield or sokoban; the same seed gives the same."""
    rng = np.random.default_rng([seed, len(world), 271828])
    state = {"maze": _maze, "trapfield": _field, "sokoban": _yard}[world](rng)
    ink = _ink(world, rng)
    picture, note = _draw(world, state, ink, rng)
    templates = {"maze": MAZE, "trapfield": TRAP, "sokoban": SOKOBAN}[world]
    number = int(rng.integers(len(templates)))
    prompt = templates[number].format(**ink.words)
    prompt = prompt[0].upper() + prompt[1:]
    return Foreign(world, picture, prompt, state, f"{note}, wording {number}, {ink.words}")


def _pick(rng: np.random.Generator, options: list[tuple[str, RGB]] | tuple[str, ...]) -> int:
    return int(rng.integers(len(options)))


def _luma(rgb: RGB) -> float:
    return 0.299 * rgb[0] + 0.587 * rgb[1] + 0.114 * rgb[2]


def _apart(a: RGB, b: RGB) -> bool:
    return abs(_luma(a) - _luma(b)) > 32 or max(abs(x - y) for x, y in zip(a, b, strict=True)) > 90


def _ink(world: str, rng: np.random.Generator) -> _Ink:
    """Colours that people can tell apart, no word twice."""
    while True:
        chosen = {"floor": FLOORS[_pick(rng, FLOORS)], "wall": WALLS[_pick(rng, WALLS)]}
        for role in ("player", "goal", "box"):
            chosen[role] = PIECES[_pick(rng, PIECES)]
        names = [name.split()[-1] for name, _ in chosen.values()]
        rgbs = [rgb for _, rgb in chosen.values()]
        pairs = [(a, b) for i, a in enumerate(rgbs) for b in rgbs[i + 1 :]]
        if len(set(names)) == len(names) and all(_apart(a, b) for a, b in pairs):
            break
    shapes = {
        "player": str(rng.choice(["circle", "circle", "circle", "square", "triangle", "diamond"])),
        "goal": str(rng.choice(["tile", "tile", "circle", "star", "square"])),
        "box": str(rng.choice(["tile", "square"])),
    }
    if world == "sokoban":
        shapes["goal"] = str(rng.choice(["tile", "circle", "star"]))
    grey = rng.random() < 0.5
    words = {role: name.replace("gray", "grey") if grey else name for role, (name, _) in chosen.items()}
    for role, shape in shapes.items():
        forms = SAY[shape]
        words[role] = f"{words[role]} {forms[int(rng.integers(len(forms)))]}"
    words["trap"] = words["wall"] + " x"
    return _Ink(words, {role: rgb for role, (_, rgb) in chosen.items()}, shapes)


def _draw(world: str, state: GridState, ink: _Ink, rng: np.random.Generator) -> tuple[Frame, str]:
    side = round(96 * 12.5 ** float(rng.uniform()))
    cell = max(11, side // max(state.rows, state.cols))
    margin = int(rng.choice([0, 0, 0, 3, 8, cell // 2])) if cell > 16 else 0
    size = (state.cols * cell + 2 * margin, state.rows * cell + 2 * margin)
    frame_rgb: RGB = (30, 30, 30) if rng.random() < 0.5 else ink.rgb["wall"]
    image = Image.new("RGB", size, frame_rgb)
    pen = ImageDraw.Draw(image, "RGBA")
    crosses = world == "trapfield" and rng.random() < 0.6
    for row in range(state.rows):
        for col in range(state.cols):
            box = _box((row, col), cell, margin)
            shut = (row, col) in state.blocked
            pen.rectangle(box, fill=ink.rgb["wall"] if shut else ink.rgb["floor"])
            if shut and crosses:
                inset, dark = cell * 0.26, tuple(value // 2 for value in ink.rgb["wall"])
                a, b, c, d = box[0] + inset, box[1] + inset, box[2] - inset, box[3] - inset
                pen.line((a, b, c, d), fill=dark, width=max(1, cell // 20))
                pen.line((a, d, c, b), fill=dark, width=max(1, cell // 20))
    line = str(rng.choice(["none", "none", "veil", "gray"]))
    over = rng.random() < 0.3
    if line != "none" and not over:
        _lines(pen, state, cell, margin, line)
    for goal in state.goals:
        _shape(pen, ink.shapes["goal"], ink.rgb["goal"], goal, cell, margin, 0.8, outline=False)
    outline, size_of = bool(rng.random() < 0.3), float(rng.uniform(0.6, 0.95))
    for crate in state.boxes:
        _shape(pen, ink.shapes["box"], ink.rgb["box"], crate, cell, margin, 0.85, outline=outline)
    _shape(pen, ink.shapes["player"], ink.rgb["player"], state.player, cell, margin, size_of, outline=outline)
    if line != "none" and over:
        _lines(pen, state, cell, margin, line)
    note = (
        f"{size[0]}x{size[1]} cell {cell} margin {margin} lines {line} {'over' if over else ''} crosses {crosses}"
    )
    return _aged(image, rng, note)


def _aged(image: Image.Image, rng: np.random.Generator, note: str) -> tuple[Frame, str]:
    """Resized to some other size, or saved as JPEG, or left as it is."""
    if rng.random() < 0.35 and min(image.size) > 160:
        share = float(rng.uniform(0.7, 1.3))
        image = image.resize((round(image.width * share), round(image.height * share)), Image.Resampling.BICUBIC)
        note += f" resized {share:.2f}"
    if rng.random() < 0.5:
        quality = int(rng.integers(60, 91))
        buffer = io.BytesIO()
        image.save(buffer, "JPEG", quality=quality)
        image = Image.open(io.BytesIO(buffer.getvalue())).convert("RGB")
        note += f" jpeg {quality}"
    return np.asarray(image, np.uint8).copy(), note


def _box(cell: Cell, side: int, margin: int) -> tuple[int, int, int, int]:
    left, top = margin + cell[1] * side, margin + cell[0] * side
    return left, top, left + side - 1, top + side - 1


def _lines(pen: ImageDraw.ImageDraw, state: GridState, cell: int, margin: int, kind: str) -> None:
    fill = (0, 0, 0, 50) if kind == "veil" else (160, 160, 160, 255)
    width = max(1, cell // 32)
    right, bottom = margin + state.cols * cell - 1, margin + state.rows * cell - 1
    for row in range(state.rows + 1):
        y = min(margin + row * cell, bottom)
        pen.line((margin, y, right, y), fill=fill, width=width)
    for col in range(state.cols + 1):
        x = min(margin + col * cell, right)
        pen.line((x, margin, x, bottom), fill=fill, width=width)


def _shape(
    pen: ImageDraw.ImageDraw,
    shape: str,
    rgb: RGB,
    cell: Cell,
    side: int,
    margin: int,
    size: float,
    *,
    outline: bool,
) -> None:
    left, top, right, bottom = _box(cell, side, margin)
    if shape == "tile":
        pen.rectangle((left, top, right, bottom), fill=rgb)
        return
    inset = (1 - size) * side / 2
    x0, y0, x1, y1 = left + inset, top + inset, right - inset, bottom - inset
    cx, cy, r = (x0 + x1) / 2, (y0 + y1) / 2, (x1 - x0) / 2
    edge = tuple(value * 6 // 10 for value in rgb) if outline else None
    if shape == "circle":
        pen.ellipse((x0, y0, x1, y1), fill=rgb, outline=edge, width=max(1, side // 28))
    elif shape == "square":
        pen.rectangle((x0, y0, x1, y1), fill=rgb, outline=edge, width=max(1, side // 28))
    elif shape == "triangle":
        pen.polygon([(cx, y0), (x1, y1), (x0, y1)], fill=rgb)
    elif shape == "diamond":
        pen.polygon([(cx, y0), (x1, cy), (cx, y1), (x0, cy)], fill=rgb)
    else:
        angles = [np.pi * (k / 5 - 0.5) for k in range(10)]
        radii = [r if k % 2 == 0 else 0.42 * r for k in range(10)]
        points = [
            (cx + q * float(np.cos(a)), cy + q * float(np.sin(a))) for a, q in zip(angles, radii, strict=True)
        ]
        pen.polygon(points, fill=rgb)


def _maze(rng: np.random.Generator) -> GridState:
    """A maze by random walks on the odd cells, with a wall all around."""
    rows, cols = (2 * int(rng.integers(2, 6)) + 1 for _ in range(2))
    free, edge = {(1, 1)}, [(1, 1)]
    while edge:
        row, col = edge.pop(int(rng.integers(len(edge))))
        for index in rng.permutation(4):
            down, right = ((2, 0), (-2, 0), (0, 2), (0, -2))[int(index)]
            there = (row + down, col + right)
            if 0 < there[0] < rows and 0 < there[1] < cols and there not in free:
                free |= {there, (row + down // 2, col + right // 2)}
                edge.append(there)
    cells = sorted(free)
    player, goal = (cells[int(index)] for index in rng.choice(len(cells), 2, replace=False))
    shut = {(row, col) for row in range(rows) for col in range(cols)} - free
    return GridState(rows, cols, frozenset(shut), frozenset([goal]), player)


def _field(rng: np.random.Generator) -> GridState:
    """A field with a few traps; the goal can be reached."""
    while True:
        rows, cols = int(rng.integers(4, 10)), int(rng.integers(4, 10))
        cells = [(int(i) // cols, int(i) % cols) for i in rng.permutation(rows * cols)]
        count = max(3, round(float(rng.uniform(0.1, 0.3)) * rows * cols))
        state = GridState(rows, cols, frozenset(cells[2 : 2 + count]), frozenset([cells[1]]), cells[0])
        if _joined(state, cells[1]):
            return state


def _yard(rng: np.random.Generator) -> GridState:
    """A walled yard with boxes and as many targets; whether it can be solved does not matter here."""
    while True:
        rows, cols = int(rng.integers(5, 10)), int(rng.integers(5, 10))
        inside = [(row, col) for row in range(1, rows - 1) for col in range(1, cols - 1)]
        cells = [inside[int(i)] for i in rng.permutation(len(inside))]
        boxes = int(rng.integers(1, 4))
        walls = int(rng.uniform(0.0, 0.25) * len(inside))
        if len(cells) < 2 * boxes + 2 + walls:
            continue
        shut = {(row, col) for row in range(rows) for col in range(cols)} - set(inside)
        shut |= set(cells[2 * boxes + 1 : 2 * boxes + 1 + walls])
        state = GridState(
            rows,
            cols,
            frozenset(shut),
            frozenset(cells[1 : 1 + boxes]),
            cells[0],
            tuple(cells[1 + boxes : 1 + 2 * boxes]),
        )
        if all(_joined(state, cell) for cell in (*state.goals, *state.boxes)):
            return state


def _joined(state: GridState, goal: Cell) -> bool:
    seen, queue = {state.player}, [state.player]
    while queue:
        row, col = queue.pop()
        for there in ((row + 1, col), (row - 1, col), (row, col + 1), (row, col - 1)):
            if state.inside(there) and there not in state.blocked and there not in seen:
                seen.add(there)
                queue.append(there)
    return goal in seen
