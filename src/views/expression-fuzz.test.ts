/**
 * Hostile expressions, names and paths: each is refused with a clear problem, or becomes SQL that has nothing but what the compiler makes. A reader
 * of its own (test/support/sql-tokens.ts) looks at each statement that DuckDB gets. `npm test` runs some thousands, a thorough run a million.
 */
import { randomInt } from 'node:crypto'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { Connection, Database, Rows } from '#duckdb/database.ts'
import { AppError, expressionProblems } from '#errors.ts'
import { must } from '#lib/assert.ts'
import { seededRandom } from '#lib/random.ts'
import type { Definition } from '#model/definition.ts'
import { countEach } from '../../test/support/decide.ts'
import { ExpressionMaker, mark, namedColumns } from '../../test/support/expression-maker.ts'
import { foreignPart } from '../../test/support/sql-tokens.ts'
import { runs } from '../../test/support/thorough.ts'
import { compileOn, openCompiler } from './compile.ts'
import type { CompiledView } from './compiled-view.ts'

/** INLET_TEST_SEED, if it is set. */
const seed = fc.readConfigureGlobal().seed ?? randomInt(2 ** 31)
const total = runs(5_000, 1_000_000)

/** Definitions that are compiled at the same time. */
const BATCH = 1_000
/** A batch that takes longer is compiled again, one definition at a time. */
const BATCH_MS = 10_000
/** The longest that one definition may take, on a machine that is busy. */
const EACH_MS = 1_000

/** Compiles definitions. Expressions that are waiting to be parsed are one statement. */
class Compilers {
  readonly #idle: Connection[]
  readonly #waiting: (() => void)[] = []
  readonly #facade: Connection
  readonly #asked = new Map<string, Promise<Rows>>()
  #parses: { readonly sql: string; readonly resolve: (json: string) => void; readonly reject: (error: unknown) => void }[] = []

  private constructor(connections: readonly Connection[], facade: Connection) {
    this.#idle = [...connections]
    facade.query = (sql, options) => this.#query(sql, options?.timeoutMs)
    this.#facade = facade
  }

  static async open(database: Database): Promise<Compilers> {
    const connections = await Promise.all(Array.from({ length: 3 }, () => database.connect()))
    return new Compilers(connections, await database.connect())
  }

  compile(definition: Definition, isNew: boolean): Promise<CompiledView | AppError> {
    return compileOn(this.#facade, definition, { isNew }).catch((error: unknown) => {
      if (error instanceof AppError) return error
      throw new Error(`cannot compile ${JSON.stringify(definition)}`, { cause: error })
    })
  }

  async #query(sql: string, timeoutMs?: number) {
    expect(foreignPart(sql, 'statement'), sql).toBeUndefined()
    const [, quoted] = /^SELECT json_serialize_sql\(('[\s\S]*')\)$/.exec(sql) ?? []
    if (quoted === undefined) return sql.startsWith('SELECT typeof(') ? this.#ask(sql, timeoutMs) : this.#askOnce(sql, timeoutMs)
    const json = await new Promise<string>((resolve, reject) => {
      if (this.#parses.push({ sql: quoted, resolve, reject }) === 1) setImmediate(() => void this.#parse())
    })
    return { columns: ['json'], types: ['JSON'], rows: [[json]] }
  }

  #ask(sql: string, timeoutMs?: number): Promise<Rows> {
    return this.#run((connection) => connection.query(sql, timeoutMs === undefined ? {} : { timeoutMs }))
  }

  /** Checks of constants depend on nothing else, and the same ones come often. */
  #askOnce(sql: string, timeoutMs?: number): Promise<Rows> {
    const found = this.#asked.get(sql)
    if (found !== undefined) return found
    const asked = this.#ask(sql, timeoutMs)
    if (this.#asked.size > 10_000) this.#asked.clear()
    this.#asked.set(sql, asked)
    return asked
  }

  async #parse(): Promise<void> {
    const parses = this.#parses
    this.#parses = []
    try {
      const values = parses.map(({ sql }) => `(${sql})`).join(', ')
      const { rows } = await this.#run((connection) =>
        connection.query(`SELECT json_serialize_sql(expression) FROM (VALUES ${values}) AS given(expression)`),
      )
      for (const [index, { resolve }] of parses.entries()) resolve(String(rows[index]?.[0]))
    } catch (error) {
      for (const { reject } of parses) reject(error)
    }
  }

  async #run<T>(work: (connection: Connection) => Promise<T>): Promise<T> {
    while (this.#idle.length === 0) await new Promise<void>((resolve) => this.#waiting.push(resolve))
    const connection = must(this.#idle.pop(), 'an idle connection')
    try {
      return await work(connection)
    } finally {
      this.#idle.push(connection)
      this.#waiting.shift()?.()
    }
  }
}

/** Whether a definition of a batch is compiled as a new one. Published ones may have more. */
const isNew = (index: number): boolean => index % 2 === 1

/** A definition with an expression, or with names and paths of an attacker. */
function makeDefinition(maker: ExpressionMaker): Definition {
  if (maker.pick([true, ...Array(11).fill(false)])) return withHostileNames(maker)
  const { text, type } = maker.make(maker.kind())
  return maker.pick([true, false]) || type === 'BOOLEAN'
    ? { columns: namedColumns, filters: [{ condition: text }] }
    : { columns: [...namedColumns, { name: 'c', type, value: text }] }
}

function withHostileNames(maker: ExpressionMaker): Definition {
  const name = maker.garbage(6).slice(0, 60)
  const quoted = `"${name.replaceAll('"', '""')}"`
  const root = maker.pick(['$', '$', '$item', '$parent', '$$.headers', '$$.user_properties', '$$'])
  const key = maker.garbage(4)
  const step = maker.pick([
    `['${key.replace(/['\\]/g, '\\$&')}']`,
    `."${key.replace(/["\\]/g, '\\$&')}"`,
    `.${key}`,
    `['${key}']`,
    key,
  ])
  const path = root + step + maker.pick(['', '', '[0]', '[*]', '.b', '[*].c'])
  const expand = maker.pick([undefined, undefined, undefined, `$${step}[*]`, '$.a[*].b[*]', `$${key}`])
  return {
    ...(expand !== undefined && { expand }),
    columns: [
      { name, type: maker.pick(['VARCHAR', 'VARCHAR[]', 'TIMESTAMP', 'JSON', 'BIGINT', `${key}`.slice(0, 100) || 'DATE']), path },
      { name: `${mark}-other`, type: 'VARCHAR', value: `concat(${quoted}, 'x')` },
      ...maker.pick([
        [],
        [{ name: 'at', type: 'TIMESTAMP', path: '$.at', format: maker.pick([key.slice(0, 60) || '%', `%Y${key}`.slice(0, 60)]) }],
      ]),
    ],
  }
}

/** Looks at a problem that a user would see. */
function checkRefusal(error: AppError, definition: Definition): void {
  const said = JSON.stringify(definition)
  expect(error.code, said).toBe('validation_error')
  const { errors = [] } = error
  expect(errors.length, said).toBeGreaterThan(0)
  for (const { code, message, path } of errors) {
    expect(path, said).toMatch(/^(columns|filters|expand)(\.|$)/)
    if (code !== undefined) expect(expressionProblems, said).toContain(code)
    expect(message, said).not.toMatch(/[A-Z]\w+ Error: |INTERNAL|Assertion/)
  }
}

const records = [
  {
    amount: 1.5,
    count: 7,
    name: 'https://a.example/x?a=1',
    paid: '2026-01-01T00:00:00Z',
    tags: ['a', null],
    doc: { a: [1] },
    odd: 1,
  },
  { amount: 'NaN', count: '9223372036854775807', name: "'; --\0\u202e🙂", paid: '0001-01-01', tags: ["'"], doc: '"', odd: -1 },
  { amount: 1e308, count: -1, name: '', paid: '9999-12-31T23:59:59.999999Z', tags: [], doc: [], odd: 0 },
  {},
].map((record) => JSON.stringify(record))

test(`SQL has nothing but what the compiler makes (INLET_TEST_SEED=${seed})`, { timeout: 3_600_000 }, async () => {
  const maker = new ExpressionMaker(seededRandom(seed))
  const database = await openCompiler()
  const compilers = await Compilers.open(database)
  const sound: Definition[] = []
  let [compiled, slowest] = [0, 0]
  const start = performance.now()
  for (let done = 0; done < total; done += BATCH) {
    const definitions = Array.from({ length: BATCH }, () => makeDefinition(maker))
    const from = performance.now()
    const results = await Promise.all(definitions.map((each, index) => compilers.compile(each, isNew(index))))
    if (performance.now() - from > BATCH_MS) await checkTimes(compilers, definitions)
    slowest = Math.max(slowest, performance.now() - from)
    for (const [index, result] of results.entries()) {
      const definition = must(definitions[index], 'a definition')
      if (result instanceof AppError) checkRefusal(result, definition)
      else {
        compiled += 1
        checkSql(result, compiled % 50 === 0)
        // Some that were published before fail when they run, such as those whose units of time are wrong.
        if (compiled % runs(20, 500) === 0 && isNew(index)) sound.push(definition)
      }
    }
  }
  database.close()
  const seconds = (performance.now() - start) / 1_000
  process.stdout.write(
    `INLET_TEST_SEED=${seed}: ${total} definitions in ${seconds.toFixed(0)} s, ${compiled} compiled, slowest thousand ${slowest.toFixed(0)} ms\n`,
  )
  expect(compiled).toBeGreaterThan(total / 20)
  // Views that compile also run: no record fails the statement.
  for (const counts of await countEach(sound, records)) expect(counts.processed).toBe(records.length)
})

/** Looks at the SQL of the expressions, and at the whole statement if asked to. */
function checkSql({ columns, condition, sql }: CompiledView, whole: boolean): void {
  const nameOf = (index: number) => `value_${index}`
  const values = columns.flatMap(({ source }) => (source.from === 'columns' ? [source.sql(nameOf)] : []))
  for (const each of [...values, ...(condition === undefined ? [] : [condition(nameOf)])]) {
    expect(foreignPart(each, 'expression'), each).toBeUndefined()
  }
  if (whole) expect(foreignPart(sql, 'statement'), sql).toBeUndefined()
}

async function checkTimes(compilers: Compilers, definitions: readonly Definition[]): Promise<void> {
  for (const definition of definitions) {
    const times: number[] = []
    while (times.length < 3 && Math.min(...times) >= EACH_MS) {
      const start = performance.now()
      await compilers.compile(definition, true)
      times.push(performance.now() - start)
    }
    expect(Math.min(...times), JSON.stringify(definition)).toBeLessThan(EACH_MS)
  }
}
