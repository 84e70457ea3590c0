/** Computes what console/README.md promises of the colours: text 4.5 to 1 on every ground that it stands on, lines and series 3 to 1. */
import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'

const tokens = readFileSync(new URL('tokens.css', import.meta.url), 'utf8')
const pairs = new Map(
  [...tokens.matchAll(/--([\w-]+): light-dark\((#\w{6}), (#\w{6})\)/g)].map(([, name = '', light = '', dark = '']) => [
    name,
    { light, dark },
  ]),
)

const grounds = ['paper', 'surface', 'sunken', 'hover']
const states = ['good', 'warn', 'bad', 'note', 'calm']
const text = [
  ...['ink', 'soft', 'accent', ...states].flatMap((ink) => grounds.map((ground) => [ink, ground])),
  ...states.flatMap((state) => [state, 'ink'].map((ink) => [ink, `${state}-tint`])),
  ...['accent', 'ink'].map((ink) => [ink, 'accent-tint']),
  ...['accent-fill', 'accent-fill-hover'].map((ground) => ['on-accent', ground]),
  ['on-bad', 'bad-fill'],
]
const lines = ['line-strong', ...[1, 2, 3, 4, 5].map((tone) => `series-${tone}`)].flatMap((line) =>
  ['paper', 'surface'].map((ground) => [line, ground]),
)

describe.each(['light', 'dark'] as const)('the %s theme', (theme) => {
  test.each(text)('text: %s on %s', (ink, ground) =>
    expect(contrast(color(ink, theme), color(ground, theme))).toBeGreaterThan(4.5),
  )
  test.each(lines)('lines: %s on %s', (line, ground) =>
    expect(contrast(color(line, theme), color(ground, theme))).toBeGreaterThan(3),
  )
})

function color(name: string | undefined, theme: 'light' | 'dark'): string {
  const pair = pairs.get(name ?? '')
  if (pair === undefined) throw new Error(`tokens.css has no colour --${name}`)
  return pair[theme]
}

/** Between 1 and 21. Source: https://www.w3.org/TR/WCAG22/#dfn-contrast-ratio */
function contrast(one: string, other: string): number {
  const [darker = 0, lighter = 0] = [luminance(one), luminance(other)].toSorted((a, b) => a - b)
  return (lighter + 0.05) / (darker + 0.05)
}

/** Between 0 and 1. Source: https://www.w3.org/TR/WCAG22/#dfn-relative-luminance */
function luminance(hex: string): number {
  const [red = 0, green = 0, blue = 0] = [1, 3, 5]
    .map((at) => Number.parseInt(hex.slice(at, at + 2), 16) / 255)
    .map((part) => (part <= 0.040_45 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4))
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue
}
