import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { MiB } from '#lib/bytes.ts'
import { type Connection, Database } from './database.ts'
import { quoteIdentifier, quoteLiteral } from './quote.ts'

describe('quoting', () => {
  let database: Database
  let connection: Connection
  beforeAll(async () => {
    database = await Database.open({ directories: [], memoryBytes: 64 * MiB })
    connection = await database.connect()
  })
  afterAll(() => database.close())

  const text = fc.oneof(
    fc.string({ unit: 'binary', minLength: 1, maxLength: 40 }),
    fc.string({
      unit: fc.constantFrom("'", '"', '\\', ';', '-', '/', '*', '$', '`', '\n', 'a', '{', '%'),
      minLength: 1,
      maxLength: 20,
    }),
  )

  test('any text survives as a literal and as a column name', async () => {
    await fc.assert(
      fc.asyncProperty(
        text.filter((each) => each.isWellFormed() && !each.includes('\0')),
        async (each) => {
          const { columns, rows } = await connection.query(`SELECT ${quoteLiteral(each)} AS ${quoteIdentifier(each)}`)
          expect(rows).toEqual([[each]])
          expect(columns).toEqual([each])
        },
      ),
      { numRuns: 300 },
    )
  })

  test('rejects text that DuckDB would cut off', () => {
    expect(() => quoteLiteral('a\0b')).toThrow('without NUL')
    expect(() => quoteIdentifier('\ud800')).toThrow('well-formed')
  })
})
