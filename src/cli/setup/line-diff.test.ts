import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { diffLines } from './line-diff.ts'

const show = (before: string, after: string) => diffLines(before, after).map(({ mark, text }) => `${mark}${text}`)

describe('the difference of two texts', () => {
  test('has the lines around it, and says what is left out', () => {
    const lines = ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'i']
    const changed = lines.map((line) => (line === 'e' ? 'E' : line))
    expect(show(lines.join('\n'), changed.join('\n'))).toEqual(['…', ' c', ' d', '-e', '+E', ' f', ' g', '…'])
    expect(show('a\n', 'a\nb\n')).toEqual([' a', '+b'])
    expect(show('a\nb\nc', 'c')).toEqual(['-a', '-b', ' c'])
  })

  /** Length of the longest common subsequence, by trying everything. */
  const common = (a: readonly string[], b: readonly string[]): number => {
    const [first, ...rest] = a
    if (first === undefined || b.length === 0) return 0
    const at = b.indexOf(first)
    return Math.max(common(rest, b), at < 0 ? 0 : 1 + common(rest, b.slice(at + 1)))
  }

  test('leads from one to the other, and is as short as it can be', () => {
    const text = fc.array(fc.constantFrom('a', 'b', 'c'), { minLength: 1, maxLength: 8 })
    fc.assert(
      fc.property(text, text, (before, after) => {
        const lines = diffLines(before.join('\n'), after.join('\n'))
        const kept = (marks: string) => lines.filter(({ mark }) => marks.includes(mark)).map(({ text: line }) => line)
        // Lines are left out only far from a change, and are the same in both.
        if (!lines.some(({ mark }) => mark === '…')) {
          expect(kept(' -')).toEqual(before)
          expect(kept(' +')).toEqual(after)
        }
        expect(kept('-')).toHaveLength(before.length - common(before, after))
        expect(kept('+')).toHaveLength(after.length - common(before, after))
      }),
      { numRuns: 1_000 },
    )
  })
})
