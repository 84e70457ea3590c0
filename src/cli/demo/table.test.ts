import { describe, expect, test } from 'vitest'
import { formatTable } from './table.ts'

const widest = (table: string) => Math.max(...table.split('\n').map((line) => line.length))

describe('a table', () => {
  test('is aligned, and shows an empty value as a dot', () => {
    expect(
      formatTable(
        ['id', 'name'],
        [
          [1, 'Ada'],
          [22, null],
        ],
        { width: 100 },
      ),
    ).toBe(['  id  name', '  ──  ────', '  1   Ada', '  22  ·'].join('\n'))
  })

  test('narrows its widest columns until it fits', () => {
    const table = formatTable(['short', 'message', 'record'], [['x', 'm'.repeat(80), 'r'.repeat(300)]], { width: 100 })
    expect(widest(table)).toBeLessThanOrEqual(100)
    expect(table).toMatch(/^ {2}x {6}m{40,}… {2}r{40,}…$/m)
  })

  test('names the columns that it leaves out', () => {
    const columns = Array.from({ length: 24 }, (_, index) => `column_${index}`)
    const table = formatTable(columns, [columns.map(() => 'v'.repeat(30))], { width: 100 })
    expect(widest(table)).toBeLessThanOrEqual(100)
    expect(table.split('\n').at(-1)).toMatch(/^ {2}… and 21 more: column_3, column_4, .*…$/)
  })

  test.each([20, 40, 80])('fits %i columns whatever the content', (width) => {
    expect(widest(formatTable(['a'.repeat(90), 'b'], [['c'.repeat(90), '\u001b[2J']], { width }))).toBeLessThanOrEqual(width)
  })
})
