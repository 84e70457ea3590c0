import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { MiB } from '#lib/bytes.ts'
import { type Connection, Database } from './database.ts'

/** U+FEFF is a byte order mark only for decoders. In a value it is a character like any other. */
const mark = '\ufeff'

const text = fc
  .tuple(fc.constantFrom('', mark, mark + mark, '\0'), fc.string({ unit: 'binary', maxLength: 20 }))
  .map((parts) => parts.join('').toWellFormed())

describe('text that leaves DuckDB', () => {
  let database: Database
  let connection: Connection
  let given: string[] = []
  const seen: unknown[] = []

  beforeAll(async () => {
    database = await Database.open({ directories: [], memoryBytes: 64 * MiB })
    connection = await database.connect()
    connection.registerTable({
      name: 'given',
      columns: { text: 'VARCHAR' },
      open: () => {
        const rest = given.values()
        return () => {
          const { value, done } = rest.next()
          return done === true ? undefined : [Buffer.from(value)]
        }
      },
    })
    connection.register({ name: 'seen', parameters: ['VARCHAR'], decide: (argument) => seen.push(argument(0)) > 0 })
  })
  afterAll(() => database.close())

  test('is the text that entered it, wherever it is read', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(text, { minLength: 1, maxLength: 5 }), async (texts) => {
        given = texts
        seen.length = 0
        const sql =
          'SELECT text, [text], {a: text}, map([text], [text]), union_value(a := text) FROM given(0, 0) WHERE seen(text)'
        const expected = texts.map((each) => [each, [each], { a: each }, [{ key: each, value: each }], { tag: 'a', value: each }])
        expect((await connection.query(sql)).rows).toEqual(expected)
        expect(seen).toEqual(texts)
        const streamed: unknown[] = []
        await connection.read(sql, { columns: () => undefined, take: (row) => streamed.push(row) > 0 })
        expect(streamed).toEqual(expected)
      }),
      { numRuns: 100 },
    )
  })

  test('is the text that was appended', async () => {
    await connection.run('CREATE TABLE appended (text VARCHAR)')
    await fc.assert(
      fc.asyncProperty(text, async (each) => {
        await connection.run('DELETE FROM appended')
        const appender = await connection.appender('appended')
        appender.appendVarchar(each)
        appender.endRow()
        appender.closeSync()
        expect((await connection.query('SELECT text, strlen(text) FROM appended')).rows).toEqual([
          [each, String(Buffer.byteLength(each))],
        ])
      }),
      { numRuns: 100 },
    )
  })

  test('is the name of a column, also if it begins with U+FEFF', async () => {
    expect((await connection.query(`SELECT 1 AS "${mark}a"`)).columns).toEqual([`${mark}a`])
  })

  test('is in each entry of a struct without names, as list_zip returns it', async () => {
    const { rows, types } = await connection.query("SELECT list_zip(['a', 'b'], ['c']), row(1, 'x', row(2, NULL))")
    expect(rows).toEqual([
      [
        [
          { 1: 'a', 2: 'c' },
          { 1: 'b', 2: null },
        ],
        { 1: 1, 2: 'x', 3: { 1: 2, 2: null } },
      ],
    ])
    expect(types[0]).toBe('STRUCT("1" VARCHAR, "2" VARCHAR)[]')
  })
})
