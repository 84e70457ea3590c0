/** Every function, operator and cast of the language on hostile records: bounded in time, in the text that it makes, and in memory. */
import { writeFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { KiB, MiB } from '#lib/bytes.ts'
import { residentMemoryOf } from '#lib/resident-memory.ts'
import type { Column } from '#model/definition.ts'
import { definitionLimits } from '#model/limits.ts'
import { refusal } from '../../test/support/condition-record.ts'
import { countEach, timeEach } from '../../test/support/decide.ts'
import { runs } from '../../test/support/thorough.ts'
import { allowedFunctions, patternFunctions } from './filter-functions.ts'
import { ownFunctions } from './own-functions.ts'

const columns: readonly Column[] = [
  { name: 'x', type: 'VARCHAR', path: '$.x' },
  { name: 'y', type: 'VARCHAR', path: '$.y' },
  { name: 'j', type: 'JSON', path: '$.x' },
  { name: 'b', type: 'BLOB', path: '$.x' },
  { name: 'l', type: 'VARCHAR[]', path: '$.l' },
  { name: 'n', type: 'DOUBLE', path: '$.n' },
  { name: 't', type: 'TIMESTAMP', path: '$.t' },
]

const repeated = (part: string) => (bytes: number) => part.repeat(Math.max(1, Math.floor(bytes / Buffer.byteLength(part))))
/** Long values, each the worst for something. */
const hostile: Readonly<Record<string, (bytes: number) => string>> = {
  letters: repeated('a'),
  'letters that grow in upper or lower case': repeated('Ⱥɐ'),
  'marks that combine': (bytes) => `e${repeated('\u0301')(bytes)}`,
  quotes: repeated("'"),
  'double quotes': repeated('"'),
  backslashes: repeated('\\'),
  'control characters': repeated('\u0001'),
  spaces: repeated(' '),
  commas: repeated('ab,'),
  digits: repeated('1'),
  escapes: (bytes) => `http://h.example/?a=${repeated('%41+%ff&a%61=')(bytes)}`,
  'names of parameters': (bytes) => `http://h.example/?${repeated('utm_sourc=1&')(bytes - 18)}`,
  'a host': (bytes) => `http://${repeated('a@')(bytes)}`,
  'a path': (bytes) => `http://h.example/${repeated('/.')(bytes - 17)}`,
  groups: repeated(':1'),
  times: repeated('1.1.2026 +00 '),
  'a list of digits': (bytes) => `[${repeated('1,')(bytes - 4)}1]`,
  'a list of large numbers': (bytes) => `[${repeated('1e15,')(bytes - 4)}1]`,
  'a list of empty texts': (bytes) => `[${repeated('"",')(bytes - 4)}""]`,
  'lists in lists': (bytes) => '['.repeat(bytes / 2) + ']'.repeat(bytes / 2),
  'an object of empty names': (bytes) => `{${repeated('"":0,')(bytes - 8)}"":0}`,
  'objects in objects': (bytes) => `${repeated('{"a":')(bytes * 0.8)}1${'}'.repeat(Math.floor((bytes * 0.8) / 5))}`,
}
const all = Object.keys(hostile)

/** Calls by the name of what they call, and the value that is worst for it. All others are tried in a thorough run. */
const calls: readonly (readonly [name: string, condition: string, worst: keyof typeof hostile])[] = [
  ...['lower', 'upper', 'trim', 'ltrim', 'rtrim', 'length', 'strlen', 'sha256', 'mask_ip', 'url_host', 'url_path'].map(
    (name) => [name, `CAST(${name}(x) AS VARCHAR) = ''`, worstOf(name)] as const,
  ),
  ...['left', 'right', 'substring', 'substr'].map((name) => [name, `${name}(x, 500000) = ''`, 'marks that combine'] as const),
  ['trim', "trim(x, 'ab\u0301') = ''", 'marks that combine'],
  ['concat', "concat(x, '-', x) = ''", 'letters'],
  ['||', "x || '-' || x = ''", 'letters'],
  ['replace', "replace(x, 'a', 'aaaa') = ''", 'letters'],
  ['replace', `replace(x, '${'a'.repeat(200)}b', '') = ''`, 'letters'],
  ['split_part', "split_part(x, ',', 100) = ''", 'commas'],
  ['split_part', "split_part(x, 'aab', 100) = ''", 'letters'],
  ['split_part', "split_part(x, ',', -100) = ''", 'commas'],
  ['hmac_sha256', "hmac_sha256('email_key', x) = ''", 'letters'],
  ['url_param', "url_param(x, 'aaaaaaaaaaaaaaaa') = ''", 'escapes'],
  ['url_param', "url_param(x, 'a') = ''", 'escapes'],
  ['url_param', "url_param(x, 'utm_source') = ''", 'names of parameters'],
  ...['starts_with', 'ends_with', 'prefix', 'suffix'].map((name) => [name, `${name}(x, x)`, 'letters'] as const),
  ...['contains', 'strpos', 'instr'].map((name) => [name, `CAST(${name}(x, y) AS VARCHAR) = ''`, 'letters'] as const),
  ['position', `position('${'a'.repeat(200)}b' IN x) = 7`, 'letters'],
  ['regexp_matches', "regexp_matches(x, '(a|aa)+$')", 'letters'],
  ['regexp_matches', "regexp_matches(x, '(a?){50}a{50}b')", 'letters'],
  ['regexp_full_match', "regexp_full_match(x, '(.*)*(.*)*x')", 'letters'],
  ['regexp_extract', "regexp_extract(x, '(.*?,){50}z', 1) = ''", 'commas'],
  ['~~', "x LIKE '%a%a%a%a%a%a%b'", 'letters'],
  ['~~*', "x ILIKE '%a%a%a%a_b%'", 'letters'],
  ['!~~', "x NOT LIKE '%a%a%b%'", 'letters'],
  ['!~~*', "x NOT ILIKE '%a%a_b%'", 'letters'],
  ['like_escape', "x LIKE '%!_a%a_%b' ESCAPE '!'", 'letters'],
  ['not_like_escape', "x NOT LIKE '%!_a%a_%b' ESCAPE '!'", 'letters'],
  ['ilike_escape', "x ILIKE '%!_a%a_%b' ESCAPE '!'", 'letters'],
  ['not_ilike_escape', "x NOT ILIKE '%!_a%a_%b' ESCAPE '!'", 'letters'],
  ['json_keys', 'len(json_keys(j)) > 0', 'an object of empty names'],
  ['json_keys', 'len(json_keys(CAST(x AS JSON))) > 0', 'objects in objects'],
  ['list_value', "list_contains([x, x, y], 'a')", 'letters'],
  ...['len', 'array_length'].map((name) => [name, `${name}(CAST(x AS VARCHAR[])) > 0`, 'a list of empty texts'] as const),
  ...['list_contains', 'array_contains', 'list_has', 'contains'].map(
    (name) => [name, `${name}(CAST(x AS VARCHAR[]), 'zz')`, 'a list of digits'] as const,
  ),
  ...['greatest', 'least', 'nullif', 'coalesce'].map((name) => [name, `${name}(x, y) = ''`, 'letters'] as const),
  ['case', "CASE WHEN x > 'b' THEN x WHEN y > 'b' THEN y ELSE concat(x, 'z') END = ''", 'letters'],
  ['if', "if(x > 'b', x, y) = ''", 'letters'],
  ['[]', "x[500000] = 'b' OR (CAST(x AS VARCHAR[]))[400000] = 'b'", 'a list of digits'],
  ['=', "x = y OR x < y OR x IN (y, 'b') OR x BETWEEN 'a' AND y OR x IS DISTINCT FROM y", 'letters'],
  ['= of a list', 'l = CAST(x AS VARCHAR[]) AND n > 0', 'a list of digits'],
  ...['abs', 'ceil', 'ceiling', 'floor', 'round', 'trunc', 'sign', 'isnan', 'isinf', 'isfinite'].map(
    (name) => [name, `CAST(${name}(CAST(x AS DOUBLE)) AS VARCHAR) = ''`, 'digits'] as const,
  ),
  ['+', 'CAST(x AS DOUBLE) * n + CAST(x AS DECIMAL(38,9)) - 1 / n // 2 % 5 > 0', 'digits'],
  ...['date_part', 'date_trunc'].map(
    (name) => [name, `CAST(${name}('hour', CAST(x AS TIMESTAMP)) AS VARCHAR) = ''`, 'times'] as const,
  ),
  ...['year', 'quarter', 'month', 'week', 'day', 'dayofweek', 'isodow', 'dayofyear', 'hour', 'minute', 'second', 'epoch'].map(
    (name) => [name, `${name}(CAST(x AS TIMESTAMP)) = 7`, 'times'] as const,
  ),
  ...['epoch_s', 'epoch_ms', 'epoch_us', 'epoch_ns'].map((name) => [name, `${name}(CAST(x AS BIGINT)) > t`, 'digits'] as const),
  ['at_zone', "at_zone(CAST(x AS TIMESTAMP), 'Europe/Berlin') > t", 'times'],
  ['strptime', "strptime(x, '%d.%m.%Y %z') > t", 'times'],
  ['strptime', "strptime(x, '%Y%j') > t", 'digits'],
  ...['VARCHAR', 'JSON', 'BLOB', 'UUID', 'DATE', 'TIME', 'TIMESTAMP', 'TIMESTAMPTZ', 'HUGEINT', 'DECIMAL(38,37)', 'BOOLEAN'].map(
    (to) => [`cast to ${to}`, `CAST(CAST(x AS ${to}) AS VARCHAR) = ''`, 'digits'] as const,
  ),
  ...['VARCHAR[]', 'DOUBLE[]', 'DECIMAL(38,37)[]', 'TIMESTAMP[]', 'VARCHAR[][]', 'JSON[]', 'UUID[]'].map(
    (to) => [`cast to ${to}`, `len(CAST(x AS ${to})) = 7`, 'a list of digits'] as const,
  ),
]

function worstOf(name: string): keyof typeof hostile {
  const worst: Readonly<Record<string, keyof typeof hostile>> = {
    lower: 'letters that grow in upper or lower case',
    upper: 'letters that grow in upper or lower case',
    trim: 'spaces',
    ltrim: 'spaces',
    rtrim: 'spaces',
    length: 'marks that combine',
    mask_ip: 'groups',
    url_host: 'a host',
    url_path: 'a path',
  }
  return worst[name] ?? 'letters'
}

const recordOf = (value: string): string =>
  JSON.stringify({ x: value, y: value.slice(0, 500), l: [value], n: 3, t: '2026-01-01T00:00:00Z' })
const viewOf = (condition: string) => ({ columns: [...columns], filters: [{ condition }] })

test('the table has each function of the language', () => {
  const names = new Set(calls.map(([name]) => name))
  const missing = [...allowedFunctions.keys(), ...ownFunctions.keys(), ...Object.keys(patternFunctions)].filter(
    (name) => !names.has(name),
  )
  expect(missing).toEqual([])
})

describe('time on long texts is linear', () => {
  test.each(all)('on %s', { timeout: 600_000 }, async (kind) => {
    const make = hostile[kind] ?? repeated('a')
    const tried = calls.filter(([, , worst]) => worst === kind || runs(0, 1) === 1)
    const definitions = tried.map(([, condition]) => viewOf(condition))
    // The same bytes, in records that are sixteen times as long.
    const times = async (bytes: number): Promise<readonly number[]> =>
      timeEach(definitions, Array(MiB / bytes).fill(recordOf(fitting(make, bytes))))
    const measured = [await times(64 * KiB), await times(64 * KiB), await times(MiB), await times(MiB)]
    for (const [index, [name, condition]] of tried.entries()) {
      const [one = 0, two = 0, three = 0, four = 0] = measured.map((each) => each[index])
      const [short, long] = [Math.min(one, two), Math.min(three, four)]
      expect(long, `${name}: ${condition}`).toBeLessThan(4 * short + 1_000)
    }
  })
})

/** Returns a value for a record of so many bytes, with its escapes. The record has it twice. */
function fitting(make: (bytes: number) => string, bytes: number): string {
  const written = Buffer.byteLength(JSON.stringify(make(8 * KiB))) / (8 * KiB)
  return make(Math.floor((bytes - 4 * KiB) / (2.1 * Math.max(1, written))))
}

/** Expressions that make a text of a text: nested as often as the compiler accepts, it must not make more than its budget. */
const growing: readonly ((text: string) => string)[] = [
  (text) => `lower(${text})`,
  (text) => `upper(lower(${text}))`,
  (text) => `(${text} || ${text})`,
  (text) => `concat(${text}, x, ${text})`,
  (text) => `replace(${text}, 'a', 'aaaa')`,
  (text) => `replace(${text}, '1', E'\\x01')`,
  (text) => `replace(${text}, x, 'aaaaaaaa')`,
  (text) => `CASE WHEN ${text} <> '' THEN concat(${text}, '1') ELSE x END`,
  (text) => `coalesce(nullif(${text}, y), concat(${text}, x))`,
  (text) => `greatest(${text}, x || x)`,
  (text) => `[${text}, x][1]`,
  (text) => `CAST([${text}] AS VARCHAR)`,
  (text) => `CAST([${text}, NULL, NULL, NULL, NULL, NULL, NULL, NULL] AS VARCHAR)`,
  (text) => `CAST([[[[${text}]]]] AS VARCHAR)`,
  (text) => `CAST(CAST([${text}] AS JSON) AS VARCHAR)`,
  (text) => `CAST([replace(${text}, '1', E'\\x01')] AS JSON) || ''`,
  (text) => `trim(coalesce(j, [${text}]))`,
  (text) => `CAST([j, [${text}]] AS VARCHAR)`,
  (text) => `CAST([[j], [[${text}]]] AS VARCHAR)`,
  (text) => `CAST(CAST(${text} AS BLOB) AS VARCHAR)`,
  (text) => `concat(CAST(${text} AS BLOB), '')`,
  (text) => `CAST([CAST(${text} AS BLOB)] AS VARCHAR)`,
  (text) => `concat(b, ${text})`,
  (text) => `CAST(CAST(${text} AS VARCHAR[]) AS VARCHAR)`,
  (text) => `CAST(CAST(${text} AS JSON[]) AS VARCHAR)`,
  (text) => `CAST(CAST(${text} AS DECIMAL(38,37)[]) AS VARCHAR)`,
  (text) => `CAST(CAST(CAST(${text} AS VARCHAR[]) AS HUGEINT[]) AS VARCHAR)`,
  (text) => `CAST(CAST(CAST(${text} AS VARCHAR[]) AS BOOLEAN[]) AS VARCHAR)`,
  (text) => `CAST(CAST(${text} AS TIMESTAMP[]) AS VARCHAR)`,
  (text) => `CAST(CAST(${text} AS DOUBLE[]) AS JSON) || ''`,
  (text) => `CAST(json_keys(CAST(${text} AS JSON)) AS VARCHAR)`,
  (text) => `url_param(concat('http://h/?a=', ${text}), 'a')`,
  (text) => `regexp_extract(${text}, '^.*$')`,
]

describe('texts that are made of texts', () => {
  test.each(growing.map((grow) => [grow('…'), grow] as const))(
    '%s is within its budget',
    { timeout: 120_000 },
    async (_, grow) => {
      const expression = await deepest(grow)
      const bytes = 1_000
      const values = all.map((kind) => hostile[kind]?.(bytes) ?? '')
      const longest = Math.max(...values.map((value) => Buffer.byteLength(value)))
      // Letters may have one byte more in the other case.
      const bound = 1.5 * (definitionLimits.textValuesMax * longest + definitionLimits.textBytesMax)
      const small = viewOf(`coalesce(strlen(${expression}) <= ${bound}, TRUE)`)
      const [counts] = await countEach([small], values.map(recordOf))
      expect(counts).toMatchObject({ accepted: values.length })
      // The same on records as large as they may be, and on as many as DuckDB processes at once.
      const long = all.flatMap((kind, at) =>
        at % runs(5, 1) === 0 ? [recordOf(fitting(hostile[kind] ?? repeated('a'), MiB))] : [],
      )
      const many = Array.from({ length: 2_048 }, (_, index) => recordOf(values[index % values.length]?.slice(0, 60) ?? ''))
      const before = resetPeak()
      await countEach([viewOf(`${expression} <> ''`)], [...many, ...long])
      expect((residentMemoryOf(process.pid)?.peakBytes ?? 0) - before).toBeLessThan(MEMORY_BYTES_MAX)
    },
  )
})

/** DuckDB's memory in these tests, and two times the texts that expressions may make of a run of half a megabyte. */
const MEMORY_BYTES_MAX = 256 * MiB + 2 * definitionLimits.textValuesMax * MiB

async function deepest(grow: (text: string) => string): Promise<string> {
  let expression = 'x'
  for (;;) {
    const next = grow(expression)
    if (next.length > definitionLimits.conditionCharsMax - 100) return expression
    const problem = await refusal(`coalesce(strlen(${next}) <= 1, TRUE)`, columns)
    if (problem !== undefined) {
      expect(problem).toMatch(/makes too much text|nested too deep|reads text as a time too often|takes too long/)
      return expression
    }
    expression = next
  }
}

/** Returns the memory of this process, from which its peak is counted from now on. */
function resetPeak(): number {
  writeFileSync('/proc/self/clear_refs', '5')
  return residentMemoryOf(process.pid)?.bytes ?? 0
}
