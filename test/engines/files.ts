/** Files with every type, for engines to read, and what they must read. */
import { copyFile, mkdtemp } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Column } from '#model/definition.ts'
import { decide } from '../support/decide.ts'

type Cell = string | boolean | null | readonly Cell[]
/** Name, type, and pairs of JSON and the value in the form of read.py. */
type Case = readonly [name: string, type: string, ...values: (readonly [json: string, expected: Cell])[]]

const same = (...texts: readonly string[]) => texts.map((text) => [text, text] as const)
const quoted = (...texts: readonly string[]) => texts.map((text) => [JSON.stringify(text), text] as const)
const nines = '9'.repeat(38)
const instants = [
  ['"2026-11-20T10:15:30.123456+02:00"', '2026-11-20T08:15:30.123456Z'],
  ['"0001-01-01T00:00:00Z"', '0001-01-01T00:00:00.000000Z'],
  ['"9999-12-31T23:59:59.999999Z"', '9999-12-31T23:59:59.999999Z'],
  ['"1969-12-31T23:59:59.999999Z"', '1969-12-31T23:59:59.999999Z'],
] as const

export const cases: readonly Case[] = [
  ['boolean', 'BOOLEAN', ['true', true], ['false', false], ['"yes"', true], ['0', false]],
  ['tinyint', 'TINYINT', ...same('1', '-128', '127', '0')],
  ['smallint', 'SMALLINT', ...same('1', '-32768', '32767', '0')],
  ['int', 'INTEGER', ...same('1', '-2147483648', '2147483647', '0')],
  ['bigint', 'BIGINT', ...same('9007199254740993', '-9223372036854775808', '9223372036854775807', '0')],
  ['hugeint', 'HUGEINT', ...same('1', `-${nines}`, nines, '0')],
  ['utinyint', 'UTINYINT', ...same('1', '0', '255', '128')],
  ['usmallint', 'USMALLINT', ...same('1', '0', '65535', '32768')],
  ['uint', 'UINTEGER', ...same('1', '0', '4294967295', '2147483648')],
  ['ubigint', 'UBIGINT', ...same('1', '0', '18446744073709551615', '9223372036854775808')],
  ['uhugeint', 'UHUGEINT', ...same('1', '0', nines, '9007199254740993')],
  ['float', 'FLOAT', ...same('1.5', '-3.4028234663852886e+38', '3.4028234663852886e+38'), ['"nan"', 'nan']],
  ['double', 'DOUBLE', ...same('0.1', '-1.7976931348623157e+308', '5e-324'), ['"nan"', 'nan']],
  ['odd_double', 'DOUBLE', ['-0.0', '-0.0'], ['"-inf"', '-inf'], ['"inf"', 'inf'], ['1e400', 'inf']],
  ['decimal_4_1', 'DECIMAL(4,1)', ...quoted('1.5', '-999.9', '999.9', '0.0')],
  ['decimal_9_2', 'DECIMAL(9,2)', ...quoted('1.50', '-9999999.99', '9999999.99', '0.01')],
  ['decimal_18_3', 'DECIMAL(18,3)', ...quoted('1.500', '-999999999999999.999', '999999999999999.999', '0.001')],
  [
    'decimal_38_10',
    'DECIMAL(38,10)',
    ...quoted(...['1.5000000000', `-${'9'.repeat(28)}.${'9'.repeat(10)}`, `${'9'.repeat(28)}.${'9'.repeat(10)}`, '0.0000000001']),
  ],
  [
    'decimal_38_38',
    'DECIMAL(38,38)',
    ...quoted(`0.${'1'.repeat(38)}`, `-0.${'9'.repeat(38)}`, `0.${'9'.repeat(38)}`, `0.${'0'.repeat(37)}1`),
  ],
  ['text', 'VARCHAR', ...quoted('plain', '', 'a\0b', '😀é\n"')],
  ['long_text', 'VARCHAR', ...quoted('x'.repeat(70_000), 'null', ' ', '\u{10ffff}')],
  ['date', 'DATE', ...quoted('2026-11-20', '0001-01-01', '9999-12-31', '1582-10-10')],
  ['time', 'TIME', ...quoted('08:15:30', '00:00:00', '23:59:59.999999', '08:15:30.5')],
  ['instant', 'TIMESTAMP', ...instants],
  ['zoned', 'TIMESTAMPTZ', ...instants],
  [
    'uuid',
    'UUID',
    ...quoted(
      'f81d4fae-7dec-11d0-a765-00a0c91e6bf6',
      `${'0'.repeat(8)}-0000-0000-0000-${'0'.repeat(12)}`,
      'ffffffff-ffff-ffff-ffff-ffffffffffff',
      '7fffffff-0000-0000-8000-000000000000',
    ),
  ],
  [
    'json',
    'JSON',
    ['{"b": 9007199254740993}', '{"b":9007199254740993}'],
    ['[1, "x"]', '[1,"x"]'],
    ['"text"', '"text"'],
    ['1.5', '1.5'],
  ],
  ['blob', 'BLOB', ['"abc"', '616263'], ['""', ''], ['"\\\\x00\\\\xFF"', '00ff'], ['"\\\\xC3"', 'c3']],
  [
    'bigints',
    'BIGINT[]',
    ['[1, null]', ['1', null]],
    ['[-9223372036854775808]', ['-9223372036854775808']],
    ['[]', []],
    ['[9223372036854775807]', ['9223372036854775807']],
  ],
  [
    'ubigints',
    'UBIGINT[]',
    ['[1, null]', ['1', null]],
    ['[18446744073709551615]', ['18446744073709551615']],
    ['[]', []],
    ['[0]', ['0']],
  ],
  ['texts', 'VARCHAR[]', ['["a", null, ""]', ['a', null, '']], ['["😀\\u0000"]', ['😀\0']], ['[]', []], ['["x"]', ['x']]],
  ['instants', 'TIMESTAMP[]', ...instants.map(([json, value]) => [`[${json}, null]`, [value, null]] as const)],
  [
    'decimals',
    'DECIMAL(18,2)[]',
    ['["1.50", null]', ['1.50', null]],
    ['["-9999999999999999.99"]', ['-9999999999999999.99']],
    ['[]', []],
    ['["0.01"]', ['0.01']],
  ],
  [
    'uuids',
    'UUID[]',
    ...same('a', 'b', 'c', 'd').map(
      ([digit]) => [`["${digit.repeat(32)}"]`, [digit.repeat(32).replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-')]] as const,
    ),
  ],
  ['nested', 'INTEGER[][]', ['[[1], [], [2, null]]', [['1'], [], ['2', null]]], ['[]', []], ['[[]]', [[]]], ['[[3]]', [['3']]]],
]

export const columns: readonly Column[] = cases.map(([name, type]) => ({ name, type, path: `$.${name}`, cast_failures: 'dlq' }))

/** Row by row; the last is NULL in every column. */
export const expected = [0, 1, 2, 3, 4].map((row) =>
  Object.fromEntries(cases.map(([name, , ...values]) => [name, values[row]?.[1] ?? null])),
)

const records = [0, 1, 2, 3].map((row) => `{${cases.map(([name, , ...values]) => `"${name}":${values[row]?.[0]}`).join()}}`)

/** Columns that ask for a form of their own, each in a file of its own: an engine may refuse it. */
export const asked = [
  { column: { name: 'uuid', type: 'UUID', path: '$.uuid', parquet: 'native' } },
  { column: { name: 'time', type: 'TIME', path: '$.time', parquet: 'native' } },
  { column: { name: 'json', type: 'JSON', path: '$.json', parquet: 'native' } },
  { column: { name: 'ubigint', type: 'UBIGINT', path: '$.ubigint', parquet: 'native' } },
  { column: { name: 'instant', type: 'TIMESTAMP', path: '$.instant', parquet: 'naive' } },
] as const satisfies readonly { readonly column: Column }[]

/** Writes the files as delivery does. Returns their directory and paths. */
export async function writeFiles() {
  const directory = await mkdtemp(join(tmpdir(), 'inlet-engines-'))
  const write = async (name: string, wanted: readonly Column[], given: readonly string[]) => {
    const path = join(directory, `${name}.parquet`)
    await decide({ columns: [...wanted] }, given, [], (from) => copyFile(from, path))
    return path
  }
  const all = await write('all', columns, [...records, '{}'])
  const forms = await Promise.all(asked.map(({ column }) => write(`asked-${column.name}`, [column], records.slice(0, 1))))
  return { directory, all, forms }
}
