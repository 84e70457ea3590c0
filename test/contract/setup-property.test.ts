/** After `apply` of any set-up a plan is empty, and the output of `export` makes an empty plan too. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { afterAll, expect, test } from 'vitest'
import { runCli } from '../support/cli.ts'
import { newRegion, useControl } from '../support/control.ts'
import { runs } from '../support/thorough.ts'

const control = useControl({ environment: { INLET_PUBLIC_KEYS: 'true' } })
const directory = mkdtempSync(join(tmpdir(), 'inlet-setup-property-'))
afterAll(() => rmSync(directory, { recursive: true }))

/** Names and texts that YAML, shells or terminals may take for something else. */
const oddNames = [
  'no',
  'null',
  '1e3',
  '- a',
  '# b',
  'ü',
  '日本',
  `\${A}`,
  `$\${B}`,
  ': c',
  '{d}',
  '👩‍🔬',
  "it's",
  '"q"',
  '~',
  '!t',
  '*a',
  '&b',
  '%',
  '@',
  '`',
]
const name = fc.oneof(fc.constantFrom('a', 'b', 'c'), fc.constantFrom(...oddNames))
const viewName = fc.constantFrom('orders', 'visits', 'readings')
const text = fc.oneof(
  fc.constantFrom(
    '',
    'plain',
    'two\nlines',
    'ends\n',
    ' leads',
    'trails ',
    'a\r\nb',
    '\ttab',
    '# c',
    '\n\nx',
    'x \n y',
    'null',
    '---',
    '...',
    '\u2028',
    `\${A}`,
  ),
  fc.string({ unit: 'grapheme', maxLength: 40 }).filter((value) => !/\p{Cc}/u.test(value)),
)
const optional = <T>(value: fc.Arbitrary<T>) => fc.option(value, { nil: undefined })

const columnType = fc.constantFrom('VARCHAR', 'BIGINT', 'DECIMAL(12,2)', 'UUID')
const path = fc.constantFrom('$.a', "$['b c']", '$.d[0]', '$["#"]')
const columnNamed = (name: string) => ({
  name: fc.constant(name),
  required: optional(fc.boolean()),
  // One column is always written.
  hidden: name === 'id' ? optional(fc.constant(false)) : optional(fc.boolean()),
  cast_failures: optional(fc.constantFrom('null', 'dlq')),
})

type LaidOutColumn = { readonly name: string; readonly type: string; readonly hidden: boolean | undefined }

/** Layouts that the columns allow. */
const layoutOf = (columns: readonly LaidOutColumn[]) => {
  const namesOf = (fits: (column: LaidOutColumn) => boolean) => columns.filter(fits).map(({ name: each }) => each)
  const isWritten = ({ hidden }: LaidOutColumn) => hidden !== true
  const inFolders = namesOf(
    (column) =>
      isWritten(column) && ['VARCHAR', 'BIGINT'].includes(column.type) && column.name !== 'id' && /^\w+$/.test(column.name),
  ).filter((each) => !/^\d/.test(each))
  const someOf = (names: readonly string[], max: number) =>
    optional(fc.shuffledSubarray([...names], { maxLength: Math.min(max, names.length) })).map((chosen) =>
      chosen?.length === 0 ? undefined : chosen,
    )
  return someOf(inFolders, 3).chain((partition_by) =>
    fc.record({
      partition_by: fc.constant(partition_by),
      sort_by: someOf(
        namesOf((column) => isWritten(column) && partition_by?.includes(column.name) !== true),
        4,
      ),
      dedupe_by: someOf(
        namesOf(() => true),
        4,
      ),
      bloom_filters: optional(fc.boolean()),
    }),
  )
}

const settings = {
  destination: fc.record({
    bucket: fc.constantFrom('lake', 'river'),
    region: fc.constantFrom('eu-central-1', 'local'),
    role_arn: fc.constant('arn:aws:iam::000000000000:role/none'),
    prefix: optional(fc.constantFrom('', 'raw', '/a/b/', 'no', `$\${P}`)),
    encryption: optional(fc.constantFrom('sse-s3', 'bucket-default')),
    checksums: optional(fc.constantFrom('standard', 'none')),
    path_style: optional(fc.boolean()),
  }),
  endpoint: fc.record({
    segment_bytes: optional(fc.constantFrom(8_000_000, 67_108_864, 1_000_000_000)),
    segment_max_age_seconds: optional(fc.integer({ min: 1, max: 3_600 })),
    output_formats: optional(fc.uniqueArray(fc.constantFrom('segments', 'parquet', 'parquet_views'), { minLength: 1 })),
    mqtt_config: optional(fc.constantFrom(null, {}, { enabled: false }, { qos_max: 0, max_connections: 5 })),
    compaction: optional(
      fc.constantFrom(null, { period: 'day' }, { period: 'hour', except_views: ['visits', 'orders'], remove_after_hours: 7 }),
    ),
    kept_headers: optional(fc.uniqueArray(fc.constantFrom('X-B', 'x-a', 'Date'))),
    kept_fields: optional(fc.constantFrom([], ['address'], ['key_name', 'address_masked'], ['address', 'key_name'])),
  }),
  view: fc.record({
    description: optional(text),
    tags: optional(fc.array(fc.constantFrom('x', 'no', 'ü', 'null'), { maxLength: 3 })),
    definition: fc
      .record({
        columns: fc
          .uniqueArray(fc.constantFrom('Name', 'no', 'null', 'a b', 'ü', '1', 'x:y', '#h'))
          .map((names) => ['id', ...names])
          .chain((names) =>
            fc.tuple(
              ...names.map((each) =>
                fc.oneof(
                  { arbitrary: fc.record({ ...columnNamed(each), type: columnType, path }), weight: 3 },
                  fc.record({
                    ...columnNamed(each),
                    type: fc.constant('VARCHAR'),
                    value: fc.constantFrom("'#: x'", 'lower($$.topic)'),
                  }),
                ),
              ),
            ),
          ),
        lists: optional(fc.constantFrom('aligned', 'packed')),
        expand: optional(fc.constantFrom('$.items[*]', '$.orders[*].items[*]')),
        filters: optional(
          fc.array(
            fc.record({
              condition: fc.constantFrom(
                '1 = 1',
                '1 = 1\n',
                "'#' <> ': '\n  AND 2 > 1",
                `'a' LIKE '%\${A}%'`,
                "  'x' = 'x' \r\n OR 1 = 2",
              ),
              description: optional(text),
            }),
            { maxLength: 2 },
          ),
        ),
      })
      .chain((definition) =>
        layoutOf(definition.columns as readonly LaidOutColumn[]).map((layout) => ({ ...definition, ...layout })),
      ),
  }),
  binding: fc.record({
    is_required: optional(fc.boolean()),
    canary_start_ts: optional(fc.constantFrom(null, '2026-11-20T08:15:30+02:00', '2026-11-20T08:15:30.123Z')),
    canary_rule: optional(
      fc.constantFrom(null, {}, { nulls_pct: null, window_minutes: null }, { min_records: 7, failed_pct: 2.5 }),
    ),
  }),
  key: fc.constantFrom(
    { scopes: ['ingest'] },
    { scopes: ['query', 'metrics'] },
    { scopes: ['admin'], endpoints: null },
    { scopes: ['ingest', 'metrics'], endpoints: 1 },
    { scopes: ['ingest'], endpoints: 1, public: true, origins: ['https://b.example', 'https://a.example'] },
  ),
}

const few = { maxLength: 3 } as const

/** References name what the set-up has. */
const setup = fc
  .record({
    destinations: fc.uniqueArray(name, few),
    endpoints: fc.uniqueArray(name, few),
    views: fc.uniqueArray(viewName, few),
    keys: fc.uniqueArray(name, few),
  })
  .chain(({ destinations, endpoints, views, keys }) => {
    const pairs = endpoints.flatMap((endpoint) => views.map((view) => ({ endpoint, view })))
    const tupleOf = <T, U>(names: readonly T[], arbitraryOf: (each: T) => fc.Arbitrary<U>) => fc.tuple(...names.map(arbitraryOf))
    return fc.record({
      destinations: tupleOf(destinations, (each) => settings.destination.map((rest) => ({ name: each, ...rest }))),
      endpoints: tupleOf(endpoints, (each) =>
        fc
          .tuple(settings.endpoint, fc.constantFrom(undefined, null, ...destinations))
          .map(([rest, destination]) => ({ name: each, destination, ...rest })),
      ),
      views: tupleOf(views, (each) => settings.view.map((rest) => ({ name: each, ...rest }))),
      bindings: fc
        .subarray(pairs)
        .chain((chosen) => tupleOf(chosen, (each) => settings.binding.map((rest) => ({ ...each, ...rest })))),
      keys: tupleOf(keys, (each) =>
        settings.key.map((rest) => ({
          name: each,
          ...rest,
          ...('endpoints' in rest && rest.endpoints === 1
            ? endpoints.length === 0
              ? { scopes: ['ingest'], endpoints: null, public: false, origins: null }
              : { endpoints: endpoints.slice(0, 1) }
            : {}),
        })),
      ),
    })
  })

type Setup = typeof setup extends fc.Arbitrary<infer T> ? T : never

let places = 0

test('plan after apply and after export is empty, also when a set-up replaces another one', { timeout: 280_000 }, async () => {
  await fc.assert(
    fc.asyncProperty(setup, setup, async (first, second) => {
      const { api_key } = await control().newAccount()
      const region = newRegion()
      const place = join(directory, String(places++))
      mkdirSync(place)
      const environment = { INLET_URL: control().url, INLET_API_KEY: api_key, INLET_VAR_A: `\${A}`, INLET_VAR_B: 'b' }
      const inlet = async (...args: readonly string[]) => {
        const { code, out, err } = await runCli(args, { environment })
        expect(code, `inlet ${args.join(' ')}: ${out}${err}`).toBe(0)
        return out
      }
      const write = (file: string, content: Setup) => {
        const endpoints = content.endpoints.map((endpoint) => ({ ...endpoint, region }))
        writeFileSync(join(place, file), JSON.stringify({ ...content, endpoints }))
        return join(place, file)
      }
      const check = async (file: string) => {
        await inlet('apply', '-f', file, '--prune', '--yes', '--keys-to', join(place, 'keys.json'))
        expect(JSON.parse(await inlet('plan', '-f', file, '--prune', '--json'))).toMatchObject({ changes: [] })
        const exported = join(place, `${file}-exported`.replaceAll('/', '_'))
        await inlet('export', '-f', exported)
        const all = await inlet('plan', '-f', exported, '--prune', '--json').catch((error) => {
          // An account without anything has no files.
          if (String(error).includes('has no files')) return '{"changes":[]}'
          throw error
        })
        expect(JSON.parse(all)).toMatchObject({ changes: [] })
        writeFileSync(join(place, 'printed.yaml'), await inlet('export'))
        expect(JSON.parse(await inlet('plan', '-f', join(place, 'printed.yaml'), '--prune', '--json'))).toMatchObject({
          changes: [],
        })
      }
      await check(write('first.json.yaml', first))
      // A destination can be validated every 30 seconds.
      control().clock.advance(31_000)
      await check(write('second.json.yaml', second))
    }),
    { numRuns: runs(3, 50), interruptAfterTimeLimit: 240_000 },
  )
})
