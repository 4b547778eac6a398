"""The data of textbooks, as printed: rows for a table, regardless of their run order."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

Rows = list[dict[str, Any]]
SIGNS = ("-", "+")


def _yates(names: Sequence[str], values: str) -> Rows:
    """A full factorial of two levels in F. Yates's order: the first factor changes with every run."""
    runs = product(SIGNS, repeat=len(names))
    return [
        {**dict(zip(names, reversed(levels), strict=True)), "value": value}
        for levels, value in zip(runs, _numbers(values), strict=True)
    ]


def _numbers(text: str) -> list[float]:
    return [float(each) for each in text.split()]


def eddy() -> Rows:
    """NIST/SEMATECH e-Handbook 5.4.7.1 and 1.4.2.10: turns, winding distance, wire gauge of a probe."""
    return _yates(("X1", "X2", "X3"), "1.70 4.57 0.55 3.39 1.51 4.59 0.67 4.29")


def pilot() -> Rows:
    """Box, Hunter, Hunter, Statistics for Experimenters (2005), table 5.1: the means."""
    return _yates(("T", "C", "K"), "60 72 54 68 52 83 45 80")


def filtration() -> Rows:
    """Montgomery, Design and Analysis of Experiments, example 6.2: temperature, pressure, formaldehyde, stirring."""
    return _yates("ABCD", "45 71 48 65 68 60 80 65 43 100 45 104 75 86 70 96")


def reactor() -> Rows:
    """Box, Hunter, Hunter, table 6.11 (1st ed. 12.1): feed, catalyst, agitation, temperature, concentration."""
    values = "61 53 63 61 53 56 54 61 69 61 94 93 66 60 95 98 56 63 70 65 59 55 67 65 44 45 78 77 49 42 81 82"
    return _yates("ABCDE", values)


def bicycle() -> Rows:
    """Box, Hunter, Hunter, table 6.5 (1st ed. 12.5): seconds up a hill, by D=AB, E=AC, F=BC, G=ABC."""
    names = ("seat", "dynamo", "handlebars", "gear", "raincoat", "breakfast", "tires")
    words = (("seat", "dynamo"), ("seat", "handlebars"), ("dynamo", "handlebars"), ("seat", "dynamo", "handlebars"))
    rows = _yates(names[:3], "69 52 60 83 71 50 59 88")
    for row in rows:
        for name, word in zip(names[3:], words, strict=True):
            row[name] = SIGNS[(sum(row[each] == "-" for each in word) + 1) % 2]
    return rows


def penicillin() -> Rows:
    """Box, Hunter, Hunter, table 4.4: four variants of a process in five blends of corn steep liquor."""
    blends = ("89 88 97 94", "84 77 92 79", "81 87 87 85", "87 92 89 84", "79 81 80 88")
    return [
        {"blend": blend, "variant": variant, "value": value}
        for blend, values in enumerate(blends, 1)
        for variant, value in zip("ABCD", _numbers(values), strict=True)
    ]


def poisons() -> Rows:
    """Box, Cox, J. R. Statist. Soc. B 26 (1964) 211-252: survival times in units of 10 hours."""
    cells = {
        "I": (".31 .45 .46 .43", ".82 1.10 .88 .72", ".43 .45 .63 .76", ".45 .71 .66 .62"),
        "II": (".36 .29 .40 .23", ".92 .61 .49 1.24", ".44 .35 .31 .40", ".56 1.02 .71 .38"),
        "III": (".22 .21 .18 .23", ".30 .37 .38 .29", ".23 .25 .24 .22", ".30 .36 .31 .33"),
    }
    return [
        {"poison": poison, "treat": treat, "value": value}
        for poison, rows in cells.items()
        for treat, values in zip("ABCD", rows, strict=True)
        for value in _numbers(values)
    ]


def npk() -> Rows:
    """R's npk (Yates; Venables, Ripley): peas, N*P*K confounded with six blocks of four plots."""
    yields = (
        "49.5 62.8 46.8 57.0 59.8 58.5 55.5 56.0 62.8 55.8 69.5 55.0 62.0 48.8 45.5 44.2 52.0 51.5 49.8 48.8 57.2 59.0 "
        "53.2 56.0"
    )
    n, p, k = "010111000110110010101100", "110001011100010110010110", "100101100101011000111010"
    return [
        {"plot": f"b{at // 4 + 1}", "N": n[at], "P": p[at], "K": k[at], "value": value}
        for at, value in enumerate(_numbers(yields))
    ]


def warpbreaks() -> Rows:
    """R's warpbreaks (Tippett 1950; Tukey 1977)."""
    values = (
        "26 30 54 25 70 52 51 26 67 18 21 29 17 12 18 35 30 36 36 21 24 18 10 43 28 15 26 27 14 29 19 29 31 41 20 44 "
        "42 26 19 16 39 28 21 39 29 20 21 24 17 13 15 15 16 28"
    )
    cells = [(wool, tension) for wool, tension in product("AB", "LMH") for _ in range(9)]
    return [
        {"wool": wool, "tension": tension, "value": value}
        for (wool, tension), value in zip(cells, _numbers(values), strict=True)
    ]


def tooth_growth() -> Rows:
    """R's ToothGrowth (Crampton 1947; Bliss 1952): dose as a factor of three levels."""
    values = (
        "4.2 11.5 7.3 5.8 6.4 10 11.2 11.2 5.2 7 16.5 16.5 15.2 17.3 22.5 17.3 13.6 14.5 18.8 15.5 23.6 18.5 33.9 25.5 "
        "26.4 32.5 26.7 21.5 23.3 29.5 15.2 21.5 17.6 9.7 14.5 10 8.2 9.4 16.5 9.7 19.7 23.3 23.6 26.4 20 25.2 25.8 "
        "21.2 14.5 27.3 25.5 26.4 22.4 24.5 24.8 30.9 26.4 27.3 29.4 23"
    )
    cells = [(supp, dose) for supp, dose in product(("VC", "OJ"), ("0.5", "1", "2")) for _ in range(10)]
    return [
        {"supp": supp, "dose": dose, "value": value}
        for (supp, dose), value in zip(cells, _numbers(values), strict=True)
    ]


def corrosion() -> Rows:
    """Box, Hunter, Hunter, table 9.1: six heats of a furnace, four coated bars in each."""
    heats = (
        ("360", "C2 73 C3 83 C1 67 C4 89"),
        ("370", "C1 65 C3 87 C4 86 C2 91"),
        ("380", "C3 147 C1 155 C2 127 C4 212"),
        ("380", "C4 153 C3 90 C2 100 C1 108"),
        ("370", "C4 150 C1 140 C3 121 C2 142"),
        ("360", "C1 33 C4 54 C2 8 C3 46"),
    )
    rows = []
    for heat, (temperature, bars) in enumerate(heats, 1):
        words = bars.split()
        rows += [
            {"heat": heat, "temperature": temperature, "coating": coating, "value": float(value)}
            for coating, value in zip(words[::2], words[1::2], strict=True)
        ]
    return rows


def pulp() -> Rows:
    """Montgomery, table of "The split-plot design": tensile strength of paper, three replicates."""
    replicates = (
        ("30 35 37 36", "34 41 38 42", "29 26 33 36"),
        ("28 32 40 41", "31 36 42 40", "31 30 32 40"),
        ("31 37 41 40", "35 40 39 44", "32 34 39 45"),
    )
    return [
        {"replicate": replicate, "method": method, "temperature": temperature, "value": value}
        for replicate, methods in enumerate(replicates, 1)
        for method, values in enumerate(methods, 1)
        for temperature, value in zip((200, 225, 250, 275), _numbers(values), strict=True)
    ]


def oats() -> Rows:
    """Yates, J. Agric. Sci. 25 (1935): six blocks, plots of three varieties, subplots of four amounts of nitrogen."""
    blocks = (
        "111 130 157 174 117 114 161 141 105 140 118 156",
        "61 91 97 100 70 108 126 149 96 124 121 144",
        "68 64 112 86 60 102 89 96 89 129 132 124",
        "74 89 81 122 64 103 132 133 70 89 104 117",
        "62 90 100 116 80 82 94 126 63 70 109 99",
        "53 74 118 113 89 82 86 104 97 99 119 121",
    )
    cells = list(product(("Victory", "Golden.rain", "Marvellous"), ("0.0", "0.2", "0.4", "0.6")))
    return [
        {"field": f"b{block}", "variety": variety, "nitrogen": nitrogen, "value": value}
        for block, values in enumerate(blocks, 1)
        for (variety, nitrogen), value in zip(cells, _numbers(values), strict=True)
    ]


def machines() -> Rows:
    """nlme's Machines (Milliken, Johnson): six workers on three machines, three times each."""
    scores = {
        "A": "52.0 52.8 53.1 51.8 52.8 53.1 60.0 60.2 58.4 51.1 52.3 50.3 50.9 51.8 51.4 46.4 44.8 49.2",
        "B": "62.1 62.6 64.0 59.7 60.0 59.0 68.6 65.8 69.7 63.2 62.8 62.2 64.8 65.0 65.4 43.7 44.2 43.0",
        "C": "67.5 67.2 66.9 61.5 61.7 62.3 70.8 70.6 71.0 64.1 66.2 64.0 72.1 72.0 71.1 62.0 61.4 60.5",
    }
    return [
        {"worker": at // 3 + 1, "machine": machine, "value": value}
        for machine, values in scores.items()
        for at, value in enumerate(_numbers(values))
    ]


def ceramic() -> Rows:
    """NIST/SEMATECH e-Handbook 1.4.2.10, JAHANMI2.DAT, the 480 bars that were ground lengthwise: in turn of batch 1 and
    batch 2, 30 bars with each setting of table speed, down feed rate and wheel grit, and all settings twice.
    """
    strengths = (
        "608.781 569.67 689.556 747.541 618.134 612.182 680.203 607.766 726.232 605.38 518.655 589.226 740.447 "
        "588.375 666.83 531.384 710.272 633.417 751.669 619.06 697.979 632.447 708.583 624.256 624.972 575.143 "
        "695.07 549.278 769.391 624.972 720.186 587.695 723.657 569.207 703.7 613.257 697.626 565.737 714.98 "
        "662.131 657.712 543.177 609.989 512.394 650.771 611.19 707.977 659.982 712.199 569.245 709.631 725.792 "
        "703.16 608.96 744.822 586.06 719.217 617.441 619.137 592.845 753.333 631.754 677.933 588.113 735.919 "
        "555.724 695.274 702.411 504.167 631.754 693.333 698.254 625 616.791 596.667 551.953 640.898 636.738 "
        "720.506 571.551 700.748 521.667 691.604 587.451 636.738 700.422 731.667 595.819 635.079 534.236 716.926 "
        "606.188 759.581 575.303 673.903 590.628 736.648 729.314 675.957 619.313 729.23 624.234 697.239 651.304 "
        "728.499 724.175 797.662 583.034 668.53 620.227 815.754 584.861 777.392 565.391 712.14 622.506 663.622 "
        "628.336 684.181 587.145 629.012 584.319 640.193 538.239 644.156 538.097 642.469 595.686 639.09 648.935 "
        "439.418 583.827 614.664 534.905 537.161 569.858 656.773 617.246 659.534 610.337 695.278 584.192 734.04 "
        "598.853 687.665 554.774 710.858 605.694 701.716 627.516 382.133 574.522 719.744 582.682 756.82 563.872 "
        "690.978 715.962 670.864 616.43 670.308 778.011 660.062 604.255 790.382 571.906 714.75 625.925 716.959 "
        "682.426 603.363 707.604 713.796 617.4 444.963 689.576 723.276 676.678 745.527 563.29 778.333 581.879 "
        "723.349 447.701 708.229 557.772 681.667 593.537 566.085 632.585 687.448 671.35 597.5 569.53 637.41 "
        "581.667 755.864 643.449 692.945 581.593 766.532 494.122 725.663 620.948 698.818 615.903 760 606.667 "
        "775.272 579.167 708.885 662.51 727.201 436.237 642.56 644.223 690.773 586.035 688.333 620.833 743.973 "
        "652.535 682.461 593.516 761.43 587.451 691.542 570.964 643.392 645.192 697.075 540.079 708.229 707.117 "
        "746.467 621.779 744.819 585.777 655.029 703.98 715.224 698.237 614.417 757.12 761.363 621.751 716.106 "
        "472.125 659.502 612.7 730.781 583.17 546.928 599.771 734.203 549.227 682.051 605.453 701.341 569.599 "
        "759.729 637.233 689.942 621.774 769.424 558.041 715.286 583.17 776.197 345.294 547.099 570.999 619.942 "
        "603.232 696.046 595.335 573.109 581.047 638.794 455.878 708.193 627.88 502.825 464.085 632.633 596.129 "
        "683.382 640.371 684.812 621.471 738.161 612.727 671.492 606.46 709.771 571.76 685.199 599.304 624.973 "
        "579.459 757.363 761.511 633.417 566.969 658.754 654.397 664.666 611.719 663.009 577.409 773.226 576.731 "
        "708.261 617.441 739.086 577.409 667.786 548.957 674.481 623.315 695.688 621.761 588.288 553.978 545.61 "
        "657.157 752.305 610.882 684.523 552.304 717.159 545.303 721.343 651.934 750.623 635.24 776.488 641.083 "
        "750.623 645.321 600.84 566.127 686.196 647.844 687.87 554.815 725.527 620.087 658.796 711.301 690.38 "
        "644.355 737.144 713.812 663.851 696.707 766.63 589.453 625.922 634.468 694.43 599.751 730.217 624.542 "
        "700.77 723.505 722.242 674.717 763.828 608.539 695.668 612.135 688.887 591.935 531.021 676.656 698.915 "
        "647.323 735.905 811.97 732.039 603.883 751.832 608.643 618.663 630.778 744.845 623.063 690.826 472.463 "
        "666.893 645.932 759.86 577.176 683.752 567.53 729.591 821.654 730.706 684.49 763.124 600.427 724.193 "
        "686.023 630.352 628.109 750.338 605.214 752.417 640.26 707.899 700.767 715.582 665.924 728.746 555.926 "
        "591.193 543.299 592.252 511.03 740.833 583.994 786.367 611.048 712.386 623.338 738.333 679.585 741.48 "
        "665.004 729.167 655.86 795.833 715.711 723.502 611.999 718.333 577.722 768.08 615.129 747.5 540.316 775 "
        "711.667 760.599 639.167 758.333 549.491 682.5 684.167 658.116 672.153 738.213 594.534 681.236 627.65 "
        "704.904 551.87 693.623 594.534 624.993 602.66 700.228 585.45 611.874 555.724 579.167 574.934 720.872 "
        "584.625 690.32 555.724 677.933 611.874 674.6 698.254 611.999 748.13 530.68 689.942"
    )
    settings = ["---", "-++", "+++", "+--", "+-+", "++-", "--+", "-+-"]
    settings += ["---", "+-+", "+++", "-+-", "++-", "-++", "--+", "+--"]
    return [
        {"batch": 1 + at % 2, **dict(zip(("speed", "feed", "grit"), settings[at // 30], strict=True)), "value": value}
        for at, value in enumerate(_numbers(strengths))
    ]


def ceramic_batch(batch: int) -> Rows:
    """The 240 bars of one batch."""
    return [
        {name: value for name, value in row.items() if name != "batch"} for row in ceramic() if row["batch"] == batch
    ]
