import type { QueryResult } from '../../api/query.ts'

/** RFC 4180. NULL is an empty field, an empty text is quoted. */
export function toCsv({ columns, rows }: Pick<QueryResult, 'columns' | 'rows'>): string {
  const lines = [columns.map(({ name }) => field(name)), ...rows.map((row) => row.map(field))]
  return lines.map((line) => `${line.join(',')}\r\n`).join('')
}

/** One object per row. A name that occurs twice has the value of its last column. */
export function toJsonLines({ columns, rows }: Pick<QueryResult, 'columns' | 'rows'>): string {
  return rows
    .map((row) => `${JSON.stringify(Object.fromEntries(columns.map(({ name }, index) => [name, row[index]])))}\n`)
    .join('')
}

function field(value: unknown): string {
  if (value === null || value === undefined) return ''
  const text = typeof value === 'object' ? JSON.stringify(value) : String(value)
  return text === '' || /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text
}

/** Has the browser save a text as a file. */
export function save(name: string, type: string, text: string): void {
  const url = URL.createObjectURL(new Blob([text], { type }))
  const link = document.createElement('a')
  link.href = url
  link.download = name
  link.click()
  URL.revokeObjectURL(url)
}
