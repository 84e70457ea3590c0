/** Rows of a result as CSV, as lines of JSON, or as a table on a terminal. */
import type { Writable } from 'node:stream'
import type { RowReader, Value } from '#duckdb/database.ts'
import { countNoun } from '#lib/count-noun.ts'
import type { Json } from '#lib/json.ts'
import { inJson, knownTypes } from '#query/run-statement.ts'
import { formatTable } from '../demo/table.ts'
import type { CliContext } from '../terminal/context.ts'

export type Form = 'table' | 'json' | 'csv'

/** A table is aligned once all of its rows are known. */
const tableRowsMax = 1_000
const widthMin = 40
const widthIfUnknown = 120

export type Output = RowReader & { readonly finish: () => void }

export function outputOf(form: Form, { stdout }: CliContext['process']): Output {
  if (form === 'table') return new TableOutput(stdout)
  return new TextOutput(stdout, form)
}

type Stdout = Writable & { readonly columns?: number }

/** Never keeps more in memory than some rows. */
class TextOutput implements Output {
  readonly #stdout: Stdout
  readonly #form: 'json' | 'csv'
  #names: readonly string[] = []
  #types: ReturnType<typeof knownTypes> = []
  #lines: string[] = []
  /** A reader such as `head` has left. The output is not destroyed by that if it is the one of the process. */
  #isClosed = false

  constructor(stdout: Stdout, form: 'json' | 'csv') {
    this.#stdout = stdout
    this.#form = form
    stdout.once('error', () => {
      this.#isClosed = true
    })
  }

  readonly columns = (names: readonly string[], types: readonly string[]): void => {
    this.#names = names
    this.#types = knownTypes(types)
    if (this.#form === 'csv') this.#lines.push(names.map(csvCell).join(','))
  }

  readonly take = (values: readonly Value[]): boolean => {
    const row = inJson(values, this.#types)
    if (this.#form === 'csv') this.#lines.push(row.map(csvCell).join(','))
    else
      this.#lines.push(
        `{${row.map((value, index) => `${JSON.stringify(this.#names[index])}:${JSON.stringify(value)}`).join(',')}}`,
      )
    return !this.#isClosed
  }

  readonly drain = async (): Promise<void> => {
    if (this.#write() || this.#isClosed) return
    await new Promise<void>((resolve) => {
      const go = () => {
        for (const event of ['drain', 'error'] as const) this.#stdout.off(event, go)
        resolve()
      }
      for (const event of ['drain', 'error'] as const) this.#stdout.on(event, go)
    })
  }

  finish(): void {
    this.#write()
  }

  #write(): boolean {
    if (this.#lines.length === 0) return true
    const text = `${this.#lines.join('\n')}\n`
    this.#lines = []
    return this.#stdout.write(text)
  }
}

class TableOutput implements Output {
  readonly #stdout: Stdout
  readonly #rows: (readonly Json[])[] = []
  #names: readonly string[] = []
  #types: ReturnType<typeof knownTypes> = []
  #hasMore = false

  constructor(stdout: Stdout) {
    this.#stdout = stdout
  }

  readonly columns = (names: readonly string[], types: readonly string[]): void => {
    this.#names = names
    this.#types = knownTypes(types)
  }

  readonly take = (values: readonly Value[]): boolean => {
    this.#hasMore = this.#rows.length === tableRowsMax
    if (!this.#hasMore) this.#rows.push(inJson(values, this.#types))
    return !this.#hasMore
  }

  finish(): void {
    const count = this.#rows.length
    const more = this.#hasMore ? `The first ${count} rows; --csv and --json print all.` : countNoun(count, 'row')
    this.#stdout.write(
      `${formatTable(this.#names, this.#rows, { width: Math.max(widthMin, this.#stdout.columns || widthIfUnknown) })}\n\n  ${more}\n`,
    )
  }
}

/** Null is an empty cell, and an empty text is quoted. */
function csvCell(value: Json): string {
  if (value === null) return ''
  const text = typeof value === 'string' ? value : JSON.stringify(value)
  return text === '' || /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text
}
