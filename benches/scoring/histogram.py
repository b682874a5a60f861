"""Draws the distribution of scores of a day's drops and of sold names."""

BAR, HEIGHT, LEFT, TOP = 6, 150, 46, 28
DAY, SOLD = "#9aa5b1", "#0b7285"


def bars(scores, top, colour, base):
    out = []
    for score in range(0, 101, 2):
        share = ((scores >= score) & (scores < score + 2)).mean()
        height = HEIGHT * min(share / top, 1)
        x = LEFT + score // 2 * (BAR + 4)
        out.append(f'<rect x="{x}" y="{base - height:.1f}" width="{BAR + 2}" height="{height:.1f}" fill="{colour}"><title>{score} to {score + 1}: {share:.2%}</title></rect>')
    return out


def histogram(day, sold):
    """Draws two rows of bars over one axis, as SVG."""
    width = LEFT + 51 * (BAR + 4) + 20
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} 420" font-family="sans-serif" font-size="12" role="img">',
        "<title>DQS of a day of the market and of names that were sold</title>",
        f'<rect width="{width}" height="420" fill="#ffffff"/>',
    ]
    for row, (scores, colour, text) in enumerate(
        ((day, DAY, f"a day of the market: {len(day):,} names"), (sold, SOLD, f"names that were sold: {len(sold):,}"))
    ):
        base = TOP + (row + 1) * (HEIGHT + 30) - 10
        top = max(((scores >= score) & (scores < score + 2)).mean() for score in range(0, 101, 2))
        out.append(f'<text x="{LEFT}" y="{base - HEIGHT - 6}" fill="#343a40">{text} (tallest bar {top:.1%})</text>')
        out += bars(scores, top, colour, base)
        out.append(f'<line x1="{LEFT}" x2="{width - 20}" y1="{base}" y2="{base}" stroke="#868e96"/>')
    bottom = TOP + 2 * (HEIGHT + 30) - 10
    for score in range(0, 101, 10):
        x = LEFT + score // 2 * (BAR + 4) + BAR / 2
        out.append(f'<text x="{x}" y="{bottom + 16}" text-anchor="middle" fill="#343a40">{score}</text>')
    for score in (20, 60, 90):
        x = LEFT + score // 2 * (BAR + 4) - 1
        out.append(f'<line x1="{x}" x2="{x}" y1="{TOP}" y2="{bottom}" stroke="#e8590c" stroke-dasharray="3 3"/>')
    out.append(f'<text x="{LEFT}" y="{bottom + 38}" fill="#343a40">DQS. Dashed: 20, the median of the day; 60, its best tenth; 90, its best hundredth.</text></svg>')
    return "\n".join(out) + "\n"
