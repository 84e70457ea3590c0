const cellMax = 28
/** The last two columns may be wider. */
const lastCellMax = 56

/** Formats rows as an aligned text table, with long cells cut off. */
export function formatTable(columns: readonly string[], rows: readonly (readonly unknown[])[]): string {
  const cells = [columns, ...rows].map((row) =>
    row.map((value, index) => formatCell(value, index >= row.length - 2 ? lastCellMax : cellMax)),
  )
  const widths = columns.map((_, index) => Math.max(...cells.map((row) => row[index]?.length ?? 0)))
  const lines = cells.map((row) => `  ${row.map((text, index) => text.padEnd(widths[index] ?? 0)).join('  ')}`.trimEnd())
  const rule = `  ${widths.map((width) => '─'.repeat(width)).join('  ')}`
  return [lines[0], rule, ...lines.slice(1)].join('\n')
}

function formatCell(value: unknown, charsMax: number): string {
  const text = value === null || value === undefined ? '·' : typeof value === 'string' ? value : JSON.stringify(value)
  const line = text.replaceAll(/\s+/g, ' ')
  return line.length > charsMax ? `${line.slice(0, charsMax - 1)}…` : line
}
