"""Several ways to set a sokoban task in words."""

from __future__ import annotations

import numpy as np

from worlds.grid_words import Words, picked


def wording_of(words: Words, rng: np.random.Generator) -> str:
    """One of them, with the colours and shapes of the picture where the words know them."""
    if not words.coloured:
        return picked(
            (
                "Push every box onto a target. The player walks over free cells and pushes boxes from "
                "behind, one at "
                "a time; it cannot pull, and neither it nor a box goes through a wall. The camera stays still.",
                "Animate this box puzzle from above: the player pushes the boxes until each target holds one.",
            ),
            rng,
        )
    player, goal, box, floor, wall = words.player, words.goal, words.box, words.floor, words.wall
    return picked(
        (
            f"Make a 2D animation from this picture of a grid puzzle. The {player} gets behind a {box} "
            f"and pushes it "
            f"in a straight line over the {floor} squares onto a {goal}. To turn, the {player} walks "
            f"round to another "
            f"side of the {box}. No {box} ever overlaps a {wall} square.\n\nRules:\n The floor is "
            f"{floor}, the walls "
            f"are {wall}.\n The {player} cannot pull a {box}.\n The film ends when each {goal} is covered.\n\n"
            "Camera:\n Fixed, seen from straight above.",
            f"The worker is the {player}. Crates: {box}. Storage spots: {goal}. Walls: {wall}. Floor: "
            f"{floor}. Push "
            "every crate to a storage spot; crates cannot be pulled.",
            f"Use the {player} to push the {box} onto the {goal}. Walls are {wall} and floor cells are {floor}. "
            "Pushes go straight ahead, one at a time, and nothing passes through a wall.",
        ),
        rng,
    )
