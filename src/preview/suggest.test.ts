import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { systemClock } from '#lib/clock.ts'
import { definitionLimits } from '#model/limits.ts'
import { realLines } from '../../test/support/real-documents.ts'
import { runs } from '../../test/support/thorough.ts'
import { previewView } from './preview.ts'
import { REQUIRED_SAMPLES_MIN, suggestView } from './suggest.ts'

const options = { clock: systemClock, timeoutMs: 10_000 }
const suggest = (...samples: readonly unknown[]) =>
  suggestView(
    samples.map((sample) => (typeof sample === 'string' ? sample : JSON.stringify(sample))),
    options,
  )

/** Returns the suggested type by path. */
async function types(...samples: readonly unknown[]): Promise<Record<string, string>> {
  const { definition } = await suggest(...samples)
  return Object.fromEntries((definition?.columns ?? []).map(({ path, type }) => [path, type]))
}

async function names(...samples: readonly unknown[]): Promise<readonly string[]> {
  return (await suggest(...samples)).columns.map(({ name }) => name)
}

const codes = async (...samples: readonly unknown[]) => (await suggest(...samples)).warnings.map(({ code }) => code)

describe('types', () => {
  test.each<[string, string, string]>([
    ['true', 'false', 'BOOLEAN'],
    ['1', '-5', 'BIGINT'],
    ['9223372036854775807', '-9223372036854775808', 'BIGINT'],
    ['9223372036854775808', '1', 'HUGEINT'],
    ['99999999999999999999999999999999999999', '1', 'HUGEINT'],
    ['100000000000000000000000000000000000000', '1', 'VARCHAR'],
    ['1.5', '1', 'DOUBLE'],
    ['1e3', '-0.0', 'DOUBLE'],
    // A double would change the first, an integer the second.
    ['9007199254740993', '1.5', 'VARCHAR'],
    ['"x"', '""', 'VARCHAR'],
    ['"42"', '"1.5"', 'VARCHAR'],
    ['"2026-11-20"', '"1969-07-20"', 'DATE'],
    ['"2026-02-30"', '"2026-02-28"', 'VARCHAR'],
    ['"2026-11-20T08:00:00Z"', '"2026-11-20 08:00:00.123456+05:30"', 'TIMESTAMP'],
    ['"2026-11-20T08:00:00Z"', '"2026-11-20"', 'TIMESTAMP'],
    ['"2026-11-20T08:15Z"', '"2026-11-20T08:15+01:00[Europe/Berlin]"', 'TIMESTAMP'],
    ['"2026-11-20T08:15"', '"2026-11-20T08:15[Europe/Berlin]"', 'VARCHAR'],
    ['"2026-11-20T25:00:00Z"', '"2026-11-20"', 'VARCHAR'],
    ['"f81d4fae-7dec-11d0-a765-00a0c91e6bf6"', '"F81D4FAE-7DEC-11D0-A765-00A0C91E6BF6"', 'UUID'],
    ['"f81d4fae-7dec-11d0-a765-00a0c91e6bf6"', '"none"', 'VARCHAR'],
    ['1', '"x"', 'JSON'],
    ['{"b":1}', '1', 'JSON'],
    ['{}', '{}', 'JSON'],
    ['[]', '[]', 'JSON'],
    ['[1,null]', '[]', 'BIGINT[]'],
    ['[1]', '["x"]', 'JSON'],
    ['[[1],[2]]', '[]', 'BIGINT[][]'],
    ['[[[[[1]]]]]', '[]', 'JSON'],
    ['null', '1', 'BIGINT'],
  ])('%s and %s are %s', async (one, other, type) => {
    expect(await types(`{"a":${one}}`, `{"a":${other}}`)).toEqual({ '$.a': type })
  })
})

describe('paths', () => {
  test('cover nested objects and lists of objects', async () => {
    const order = { user: { id: 1, 'e-mail': 'x' }, items: [{ sku: 'a', tags: ['x'], of: { n: 1 } }, { sku: 'b' }], 'a b': [] }
    expect(await types(order)).toEqual({
      '$.user.id': 'BIGINT',
      '$.user.e-mail': 'VARCHAR',
      '$.items[*].sku': 'VARCHAR[]',
      '$.items[*].tags': 'VARCHAR[][]',
      '$.items[*].of.n': 'BIGINT[]',
      "$['a b']": 'JSON',
    })
  })

  test('quote names where needed', async () => {
    expect(Object.keys(await types({ 'it\'s \\ "q"': 1, 'ü.x': 1, '0': 1, '@type': 1, $ref: 1 }))).toEqual(
      expect.arrayContaining(["$['it\\'s \\\\ \"q\"']", "$['ü.x']", "$['0']", "$['@type']", "$['$ref']"]),
    )
  })

  test('cover records that are not objects', async () => {
    expect(await types('[{"a":1}]')).toEqual({ '$[*].a': 'BIGINT[]' })
    expect(await types('"x"', '"y"')).toEqual({ $: 'VARCHAR' })
    expect(await types('[1,2]')).toEqual({ $: 'BIGINT[]' })
    expect(await types('{"a":1}', '2')).toEqual({ $: 'JSON' })
  })

  test('a sample with NaN, infinities and trailing commas, which a view reads, counts', async () => {
    const sample = '{"a":NaN,"b":[1,],"c":"NaN","d":[-inf, 2 , ],"e\\"nan":{"f":Infinity,},}'
    expect(await types(sample)).toEqual({
      '$.a': 'DOUBLE',
      '$.b': 'BIGINT[]',
      '$.c': 'VARCHAR',
      '$.d': 'DOUBLE[]',
      "$['e\"nan'].f": 'DOUBLE',
    })
    expect(await codes(sample)).toEqual([])
    const { warnings } = await suggest('{"a":nano}', { a: 1 })
    expect(warnings).toMatchObject([{ code: 'invalid_json', message: expect.stringContaining('nano') }])
  })

  test('a map whose keys are data is one column', async () => {
    const samples = Array.from({ length: 40 }, (_, n) => ({ id: n, scores: { [`user-${n}`]: n } }))
    expect(await types(...samples)).toEqual({ '$.id': 'BIGINT', '$.scores': 'JSON' })
  })

  test('values that no path can name, and values that are always null, are left out with a warning', async () => {
    expect(await codes({ '': 1, b: 1 })).toEqual(['not_addressable'])
    expect(await codes({ a: null, b: 1 })).toEqual(['always_null'])
    expect(await codes({ a: [{ 'x*': 1 }], b: 1 })).toEqual(['not_addressable'])
    expect(await codes({ a: 1 }, { a: 'x' })).toEqual(['mixed_types'])
    expect(await codes('{"a":1', { a: 1 })).toEqual(['invalid_json'])
    expect(await codes(`${'['.repeat(30_000)}${']'.repeat(30_000)}`, { a: 1 })).not.toEqual([])
  })

  test('a column says why it is JSON, under its own name', async () => {
    const { warnings } = await suggest({ user: { id: 1 }, id: 'a', of: [1, 'x'] }, { user: { id: 'x' }, id: 'b', of: [] })
    expect(warnings).toEqual([
      expect.objectContaining({ code: 'mixed_types', column: 'user_id', message: expect.stringContaining('integer and text') }),
      expect.objectContaining({ code: 'mixed_types', column: 'of_', message: expect.stringContaining('"$.of[*]"') }),
    ])
  })

  test('no columns, if no path has values', async () => {
    for (const sample of ['', 'null', '{"a":null}']) {
      expect(await suggest(sample)).toMatchObject({ definition: null, columns: [] })
    }
  })

  test('at most the hundred most frequent columns', async () => {
    const wide = Object.fromEntries(Array.from({ length: 150 }, (_, n) => [`c${n}`, n]))
    const { columns, warnings } = await suggest({ ...wide }, { c149: 1 }, { c148: 1, z: 1 })
    expect(columns).toHaveLength(definitionLimits.columnsMax)
    expect(columns.map(({ name }) => name)).toEqual(expect.arrayContaining(['c148', 'c149', 'c0']))
    expect(warnings.map(({ code }) => code)).toEqual(['too_many_columns'])
  })
})

describe('times', () => {
  const formats = async (...samples: readonly unknown[]) => {
    const { definition, warnings, columns } = await suggest(...samples)
    const found = definition?.columns.map(({ path, type, format }) => [path, format ? `${type} ${format}` : type] as const)
    expect(columns.map(({ type }) => type)).toEqual(definition?.columns.map(({ type }) => type))
    return { found: Object.fromEntries(found ?? []) as Record<string, string>, warnings }
  }

  test('that are numbers or text in a format have one, and it says why', async () => {
    const { found, warnings } = await formats({
      ts: 1_795_162_530_500,
      seconds: { created: 1_795_162_530.25 },
      log: '20/Nov/2026:08:15:30 +0100',
      day: '20/11/2026 08:15',
      push_id: 1_795_162_530,
      ids: [1_795_162_530_500],
      other: 'x',
    })
    expect(found).toEqual({
      '$.ts': 'TIMESTAMP epoch_ms',
      '$.seconds.created': 'TIMESTAMP epoch_s',
      '$.log': 'TIMESTAMP %d/%b/%Y:%H:%M:%S %z',
      '$.day': 'TIMESTAMP %d/%m/%Y %H:%M',
      '$.push_id': 'BIGINT',
      '$.ids': 'BIGINT[]',
      '$.other': 'VARCHAR',
    })
    expect(warnings.map(({ code, column }) => [code, column])).toEqual(
      ['ts', 'seconds_created', 'log', 'day'].map((column) => ['time_format', column]),
    )
    expect(warnings[0]?.message).toMatch(/^"\$\.ts" has milliseconds since 1970: all values are on 2026-11-20/)
  })

  // Both have many counters, sizes and ids of nine digits and more.
  test.each([
    ['nginx-plus-status.ndjson', ['$.load_timestamp epoch_ms', '$.timestamp epoch_ms']],
    ['github-events.ndjson', []],
  ] as const)('in %s are those that its authors mean', async (name, expected) => {
    const lines = realLines(name) ?? []
    for (const [count, from] of [
      [1, 0],
      [10, 30],
      [100, 0],
      [100, 30],
    ] as const) {
      const samples = lines.slice(from, from + count)
      if (samples.length === 0) continue
      const { found } = await formats(...samples)
      const times = Object.entries(found).filter(([, type]) => type.startsWith('TIMESTAMP '))
      expect(times.map(([path, type]) => `${path} ${type.replace('TIMESTAMP ', '')}`)).toEqual(expected)
    }
  })

  test('are nothing of the kind if one value is not', async () => {
    expect((await formats({ ts: 1_795_162_530 }, { ts: 0 })).found).toEqual({ '$.ts': 'BIGINT' })
    expect((await formats({ at: '20/11/2026' }, { at: 'soon' })).found).toEqual({ '$.at': 'VARCHAR' })
    expect((await formats({ at: '05/06/2026' })).found).toEqual({ '$.at': 'VARCHAR' })
    expect((await formats({ ts: 1_795_162_530 }, { ts: null })).found).toEqual({ '$.ts': 'TIMESTAMP epoch_s' })
    // A day of the week that is not that of the date.
    const { found, warnings } = await formats({ at: 'Mon, 20 Nov 2026 08:15:30 GMT' })
    expect([found, warnings.some(({ code }) => code === 'does_not_fit')]).toEqual([
      expect.objectContaining({ '$.at': expect.stringMatching(/^(VARCHAR|TIMESTAMP )/) }),
      false,
    ])
  })
})

describe('required', () => {
  test('columns that every sample has, if there are enough samples', async () => {
    const samples = Array.from({ length: REQUIRED_SAMPLES_MIN }, (_, n) => ({ a: n, b: n > 0 ? n : null }))
    const { definition, columns, sample_count } = await suggest(...samples)
    expect(definition?.columns).toEqual([
      { name: 'a', type: 'BIGINT', path: '$.a', required: true },
      { name: 'b', type: 'BIGINT', path: '$.b' },
    ])
    expect(columns).toMatchObject([
      { found: 10, nulls: 0, missing: 0 },
      { found: 9, nulls: 1, missing: 0 },
    ])
    expect(sample_count).toBe(10)
    expect((await suggest(...samples.slice(1))).definition?.columns[0]).not.toHaveProperty('required')
  })
})

describe('names', () => {
  test('are in snake case and unique regardless of case', async () => {
    expect(await names({ userId: 1, HTTPStatus: 2, 'Größe (cm)': 3, '1st': 4, '💥': 5, select: 6 })).toEqual(
      expect.arrayContaining(['user_id', 'http_status', 'größe_cm', 'n_1st', 'value', 'select_']),
    )
    expect(await names({ dt: 1, DT: 2, at: 3, order: 4, user: { id: 5 } })).toEqual(['dt__2', 'dt_', 'at_', 'order_', 'user_id'])
    expect(await names({ a: { b: 1 }, a_b: 2, 'A-B': 3 })).toEqual(['a_b_2', 'a_b_3', 'a_b'])
  })

  test('do not depend on the order of the samples', async () => {
    const samples = [{ a_b: 1 }, { a: { b: 1 } }, { 'a-b': 1 }, { aB: 1 }]
    const of = async (given: readonly unknown[]) => {
      const { definition } = await suggest(...given)
      return Object.fromEntries((definition?.columns ?? []).map(({ name, path }) => [path, name]))
    }
    expect(await of(samples.toReversed())).toEqual(await of(samples))
  })
})

describe('any samples', () => {
  // No backslashes: once V8 (of Node 26.10) has parsed an object with the name \\, its JSON.parse takes a name \" for that one.
  const key = fc.oneof(
    fc.constantFrom(
      'a',
      'A',
      'b',
      'id',
      'userId',
      'ts',
      'user_id',
      'a b',
      "it's",
      '0',
      '-',
      'x*',
      '',
      '$',
      '"',
      'ı',
      'İ',
      'ß',
      '__proto__',
    ),
    fc.string({ unit: 'binary', maxLength: 6 }).filter((name) => !name.includes('\\')),
  )
  const leaf = fc.oneof(
    fc.constantFrom(
      'null',
      'true',
      '0',
      '-0',
      '1e400',
      '0.1',
      '9007199254740993',
      '18446744073709551616',
      '1'.repeat(38),
      '9'.repeat(50),
    ),
    fc.constantFrom(
      '"2026-11-20"',
      '"2026-11-20T08:00:00Z"',
      '"2026-11-20T24:00:00Z"',
      '"0001-01-01"',
      '"9999-12-31T23:59:59-14:00"',
    ),
    fc.constantFrom(
      '1795162530',
      '1795162530500',
      '"20/11/2026 08:15"',
      '"05/06/2026"',
      '"20261120"',
      '"Fri Nov 20 08:15:30 2026"',
    ),
    fc.constantFrom('"f81d4fae-7dec-11d0-a765-00a0c91e6bf6"', '"infinity"', '""', '" "', '"NaN"', '"null"', '{}', '[]'),
    fc.bigInt({ min: -(2n ** 66n), max: 2n ** 66n }).map(String),
    fc.double({ noNaN: true, noDefaultInfinity: true }).map((value) => JSON.stringify(value)),
    fc.string({ unit: 'grapheme', maxLength: 8 }).map((text) => JSON.stringify(text)),
    fc.date({ noInvalidDate: true }).map((date) => JSON.stringify(date)),
  )
  const { value } = fc.letrec<{ value: string; object: string; list: string }>((tie) => ({
    value: fc.oneof({ depthSize: 'small', withCrossShrink: true }, leaf, tie('object'), tie('list')),
    object: fc
      .dictionary(key, tie('value'), { maxKeys: 5 })
      .map((fields) => `{${Object.entries(fields).map(([name, json]) => `${JSON.stringify(name.toWellFormed())}:${json}`)}}`),
    list: fc.array(tie('value'), { maxLength: 3 }).map((items) => `[${items}]`),
  }))
  /** Some samples are alike, as records are. */
  const samples = fc
    .array(value, { minLength: 1, maxLength: 12 })
    .chain((some) =>
      fc.array(fc.constantFrom(...some), { minLength: some.length, maxLength: 24 }).map((more) => [...some, ...more]),
    )

  test('preview without errors in the suggested view', { timeout: 120_000 }, async () => {
    let suggested = 0
    await fc.assert(
      fc.asyncProperty(samples, async (given) => {
        const { definition, columns, sample_count } = await suggestView(given, options)
        expect(sample_count).toBe(given.length)
        if (definition === null) return
        suggested += 1
        expect(columns.map(({ name, type }) => [name, type])).toEqual(definition.columns.map(({ name, type }) => [name, type]))
        const preview = await previewView({ definition, samples: given }, options)
        expect(preview.errors).toEqual([])
        expect(preview.warnings).toEqual([])
        expect(preview).toMatchObject({ success: true, rowCount: given.length })
        for (const [index, { found }] of columns.entries()) {
          const column = preview.columns[index]
          expect((column?.totalCount ?? 0) - (column?.nullCount ?? 0)).toBe(found)
        }
      }),
      { numRuns: runs(25, 150) },
    )
    expect(suggested).toBeGreaterThan(runs(8, 50))
  })
})
