/** The tables of docs/scale.md: printed, and with `--write` put into the page between the comments that name them. */
import { readFileSync, writeFileSync } from 'node:fs'

export type Cell = string | number

export class Tables {
  readonly #made = new Map<string, string>()

  /** Prints a table. Numbers are aligned to the right. */
  add(name: string, columns: readonly string[], rows: readonly (readonly Cell[])[]): void {
    const isNumber = columns.map((_, index) =>
      rows.every((row) => typeof row[index] === 'number' || /^[\d–-]/.test(String(row[index]))),
    )
    const lines = [columns, isNumber.map((is) => (is ? '---:' : '---')), ...rows].map((row) => `| ${row.join(' | ')} |`)
    const text = lines.join('\n')
    this.#made.set(name, text)
    console.log(`\n${name}\n\n${text}`)
  }

  /** Replaces the tables in the page. Throws for one that the page has no place for. */
  writeInto(path: URL): void {
    let page = readFileSync(path, 'utf8')
    for (const [name, text] of this.#made) {
      const place = new RegExp(`(<!-- ${name} -->\n)[^]*?(<!-- end -->)`)
      if (!place.test(page)) throw new Error(`${path.pathname} has no place for the table ${name}`)
      page = page.replace(place, (_, before: string, after: string) => `${before}\n${text}\n\n${after}`)
    }
    writeFileSync(path, page)
  }
}

/** Returns a number with three significant digits, and spaces between thousands. */
export function round(value: number): string {
  if (value === 0) return '0'
  const digits = Math.max(0, 2 - Math.floor(Math.log10(Math.abs(value))))
  return value >= 1000
    ? Math.round(value)
        .toString()
        .replace(/\B(?=(\d{3})+$)/g, ' ')
    : value.toFixed(Math.min(digits, 3)).replace(/\.?0+$/, (zeros) => (zeros.includes('.') ? '' : zeros))
}

export function size(bytes: number): string {
  const [unit, factor] =
    bytes < 1e3 ? ['B', 1] : bytes < 1e6 ? ['kB', 1e3] : bytes < 1e9 ? ['MB', 1e6] : bytes < 1e12 ? ['GB', 1e9] : ['TB', 1e12]
  return `${round(bytes / Number(factor))} ${unit}`
}

export function share(part: number, whole: number): string {
  return `${round((part / whole) * 100)} %`
}

/** Returns the value that this share (0 to 1) of the values does not exceed. */
export function quantile(values: readonly number[], at: number): number {
  return values.toSorted((a, b) => a - b)[Math.min(values.length - 1, Math.floor(values.length * at))] ?? Number.NaN
}
