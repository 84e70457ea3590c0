import { printable } from '#lib/text-lines.ts'

const cellCharsMax = 56
const indent = '  '
const gap = '  '

/**
 * Formats rows as an aligned text table of at most `width` characters. The widest columns are narrowed first, down to `narrowest`; if that
 * is not enough, a line below names the columns that are left out.
 */
export function formatTable(
  columns: readonly string[],
  rows: readonly (readonly unknown[])[],
  { width, narrowest = 24 }: { readonly width: number; readonly narrowest?: number },
): string {
  const cells = [columns, ...rows].map((row) => row.map(toText))
  const needed = columns.map((_, index) => Math.max(...cells.map((row) => row[index]?.length ?? 0)))
  const widths = narrow(needed, width, narrowest)
  const toLine = (row: readonly string[]) =>
    `${indent}${widths.map((chars, index) => clip(row[index] ?? '', chars).padEnd(chars)).join(gap)}`.trimEnd()
  const [head = '', ...body] = cells.map(toLine)
  const omitted = columns.slice(widths.length)
  const note = `${indent}… and ${omitted.length} more: ${omitted.join(', ')}`
  return [
    head,
    toLine(widths.map((chars) => '─'.repeat(chars))),
    ...body,
    ...(omitted.length === 0 ? [] : [clip(note, width)]),
  ].join('\n')
}

/** Returns the widths of the columns that fit. */
function narrow(needed: readonly number[], width: number, narrowest: number): readonly number[] {
  for (let count = needed.length; count > 1; count -= 1) {
    for (let charsMax = cellCharsMax; charsMax >= narrowest; charsMax -= 1) {
      const widths = needed.slice(0, count).map((chars) => Math.min(chars, charsMax))
      const total = widths.reduce((sum, chars) => sum + chars, indent.length + gap.length * (count - 1))
      if (total <= width) return widths
    }
  }
  return needed.slice(0, 1).map((chars) => Math.min(chars, width - indent.length))
}

function toText(value: unknown): string {
  const text = value === null || value === undefined ? '·' : typeof value === 'string' ? value : JSON.stringify(value)
  return printable(text.replaceAll(/\s+/g, ' '))
}

function clip(text: string, charsMax: number): string {
  return text.length > charsMax ? `${text.slice(0, charsMax - 1)}…` : text
}
