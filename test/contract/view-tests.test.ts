/** `inlet test`: the tests of views in files, run by the real program. */
import { execFile } from 'node:child_process'
import { createHmac } from 'node:crypto'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'

const program = resolve(import.meta.dirname, '../../src/main.ts')
const directory = mkdtempSync(join(tmpdir(), 'inlet-view-tests-'))
afterAll(() => rmSync(directory, { recursive: true }))

let places = 0

/** A directory with these files. */
function newPlace(files: Readonly<Record<string, string>>) {
  const place = join(directory, String(places++))
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(dirname(join(place, name)), { recursive: true })
    writeFileSync(join(place, name), text)
  }
  return place
}

type Result = { readonly code: number | string; readonly out: string; readonly err: string }

function execute(file: string, args: readonly string[], cwd: string): Promise<Result> {
  const env = { PATH: process.env['PATH'], HOME: cwd, NODE_COMPILE_CACHE: process.env['NODE_COMPILE_CACHE'] }
  return new Promise((done) => {
    execFile(file, args, { cwd, env, timeout: 60_000 }, (error, out, err) =>
      done({ code: error === null ? 0 : (error.code ?? String(error.signal)), out, err }),
    )
  })
}

/** Runs `inlet test` on files of the directory `setup`. */
function testFiles(files: Readonly<Record<string, string>>, ...args: readonly string[]): Promise<Result> {
  const named = Object.entries(files).map(([name, text]) => [`setup/${name}`, text])
  return execute(process.execPath, [program, 'test', ...args], newPlace(Object.fromEntries(named)))
}

const orders = `views:
  - name: orders
    definition:
      columns:
        - { name: order_id, type: BIGINT, path: $.order.id, required: true }
        - { name: amount, type: "DECIMAL(12,2)", path: $.order.amount, cast_failures: dlq }
        - { name: at, type: TIMESTAMP, path: $.at }
        - { name: skus, type: "VARCHAR[]", path: "$.items[*].sku" }
        - { name: extra, type: JSON, path: $.extra }
        - { name: topic, type: VARCHAR, path: $$.topic }
        - { name: site, type: VARCHAR, path: $$.user_properties.site }
        - { name: request, type: VARCHAR, path: $$.headers.x-request-id }
        - { name: protocol, type: VARCHAR, path: $$.protocol }
        - { name: seen, type: TIMESTAMP, path: $$.ingested_at }
      filters:
        - condition: amount > 0
`
const oneOrder = (tests: string) => ({ 'views/orders.yaml': orders, 'views/orders.test.yaml': tests })

describe('a case passes', () => {
  test('with many rows of one record', async () => {
    const view = `views:
  - name: orders
    definition:
      expand: $.items[*]
      columns:
        - { name: sku, type: VARCHAR, path: $item.sku, required: true }
        - { name: line, type: INTEGER, path: $$.item_index }
`
    const tests = `cases:
  - name: a row for each item
    records: [{ items: [{ sku: a }, { sku: b }] }, { items: [] }, { items: [{ sku: c }, {}] }, { items: [{ sku: d }] }]
    rows: [{ sku: a, line: 0 }, { sku: b, line: 1 }, { sku: d, line: 0 }]
    dropped: 1
    dead_letters: [{ error_code: missing_required, column: sku, item: '$.items[1]' }]
`
    const files = { 'views/orders.yaml': view, 'views/orders.test.yaml': tests }
    expect(await testFiles(files)).toEqual({ code: 0, out: '1 case passed.\n', err: '' })
  })

  test('if dedupe_by leaves out what the case has already, and not what other cases have', async () => {
    const view = `views:
  - name: orders
    definition:
      columns: [{ name: id, type: BIGINT, path: $.id, hidden: true }, { name: n, type: INTEGER, path: $.n }]
      dedupe_by: [id]
`
    const tests = `cases:
  - { name: one, records: [{ id: 1, n: 1 }, { id: 1, n: 2 }, { n: 3 }, { n: 3 }], rows: [{ n: 1 }, { n: 3 }, { n: 3 }], dropped: 1 }
  - { name: other, records: [{ id: 1, n: 4 }], rows: [{ n: 4 }] }
`
    const files = { 'views/orders.yaml': view, 'views/orders.test.yaml': tests }
    expect(await testFiles(files)).toEqual({ code: 0, out: '2 cases passed.\n', err: '' })
  })

  test.each([
    [
      'with the values of previews',
      'rows: [{ order_id: "7", amount: "9.50", at: "2026-11-20T07:15:30.000000Z", skus: [a, null] }]',
    ],
    ['with values as people write them', 'rows: [{ order_id: 7, amount: 9.5, at: 2026-11-20T08:15:30+01:00, skus: [a, null] }]'],
    ['with some columns', 'rows: [{ amount: 9.50 }]'],
    ['with NULL', 'rows: [{ topic: null }]'],
    ['with JSON as a value', 'rows: [{ extra: { b: [1, x] } }]'],
    ['with JSON as text, beside a value that is read', `rows: [{ order_id: 7, extra: '{"b":[1,"x"]}' }]`],
  ])('%s', async (_, expected) => {
    const record = '{ order: { id: 7, amount: "9.50" }, at: 2026-11-20T07:15:30Z, items: [{ sku: a }, {}], extra: { b: [1, x] } }'
    const tests = `cases:\n  - name: one\n    records: [${record}]\n    ${expected}\n`
    expect(await testFiles(oneOrder(tests))).toEqual({ code: 0, out: '1 case passed.\n', err: '' })
  })

  test('with broken JSON, dead letters, filters, and numbers with all digits', async () => {
    const tests = `cases:
  - name: dead letters are in the order of their records
    records:
      - '{"order":'
      - { order: { amount: 3 } }
      - { order: { id: 1, amount: much } }
    dead_letters:
      - { error_code: invalid_json, message: the record is not valid JSON }
      - { error_code: missing_required, column: order_id }
      - { error_code: cast_failed, column: amount }
  - name: filters drop
    records: [{ order: { id: 1, amount: 0 } }, { order: { id: 2 } }, { order: { id: 3, amount: 1 } }]
    rows: [{ order_id: 3 }]
    dropped: 2
  - name: text is sent as it is
    records: ['{"order":{"id":9007199254740993,"amount":"1234567890.12"}}']
    rows: [{ order_id: "9007199254740993", amount: "1234567890.12" }]
  - name: a record may be any JSON
    records: [3, null, [], '"text"']
    dead_letters: [${Array(4).fill('{ error_code: missing_required }').join(', ')}]
`
    expect(await testFiles(oneOrder(tests))).toEqual({ code: 0, out: '4 cases passed.\n', err: '' })
  })

  test('with an envelope', async () => {
    const tests = `cases:
  - name: MQTT
    envelope: { topic: plant/7, client_id: sensor, user_properties: { site: north }, received_at: 2026-11-20T08:15:30+01:00 }
    records: [&record { order: { id: 1, amount: 1 } }]
    rows: [{ topic: plant/7, site: north, request: null, protocol: mqtt, seen: 2026-11-20T07:15:30Z }]
  - name: HTTP
    envelope: { headers: { X-Request-Id: r7 } }
    records: [*record]
    rows: [{ topic: null, request: r7, protocol: http, seen: 2026-01-01T00:00:00Z }]
`
    expect(await testFiles(oneOrder(tests))).toEqual({ code: 0, out: '2 cases passed.\n', err: '' })
  })

  test('with computed columns, and hidden ones in dead letters alone', async () => {
    const view = `views: [{ name: orders, definition: { columns: [
      { name: cents, type: INTEGER, path: $.cents, hidden: true, cast_failures: dlq },
      { name: euros, type: "DECIMAL(12,2)", value: cents * 0.01 }] } }]`
    const tests = (column: string) => `cases:
  - name: a
    records: [{ cents: 950 }, { cents: much }]
    rows: [{ ${column}: 9.5 }]
    dead_letters: [{ error_code: cast_failed, column: cents }]
`
    const passed = { code: 0, out: '1 case passed.\n' }
    expect(await testFiles({ 'views/orders.yaml': view, 'views/orders.test.yaml': tests('euros') })).toMatchObject(passed)
    const { err } = await testFiles({ 'views/orders.yaml': view, 'views/orders.test.yaml': tests('cents') })
    expect(err).toContain('cases[0].rows[0].cents: names cents, which is no column of the view: the view has euros')
  })

  test('for the view beside it, of its name, or that it names; in several documents', async () => {
    const view = (name: string) => `{ name: ${name}, definition: { columns: [{ name: ${name}_id, type: INTEGER, path: $.id }] } }`
    const tests = (column: string) => `cases: [{ name: one, records: [{ id: 1 }], rows: [{ ${column}: 1 }] }]\n`
    const result = await testFiles({
      'one.yaml': `views: [${view('a')}]`,
      'one.test.yaml': tests('a_id'),
      'several.yaml': `views: [${view('b')}, ${view('c')}, ${view('d')}, ${view('e')}]`,
      'deep/b.test.yml': tests('b_id'),
      'several.test.yaml': `view: c\n${tests('c_id')}---\nview: d\n${tests('d_id')}`,
    })
    expect(result).toEqual({ code: 0, out: '4 cases passed.\nViews without a test: e.\n', err: '' })
  })
})

test('a case that fails shows each column and record that differs', async () => {
  const long = `${'a'.repeat(300)}X${'b'.repeat(300)}`
  const result = await testFiles({
    ...oneOrder(`cases:
  - name: passes
    records: [{ order: { id: 1, amount: 1 } }]
    rows: [{ order_id: 1 }]
  - name: columns differ
    records:
      - { order: { id: 1, amount: "9.50" }, items: [{ sku: a }, { sku: b }] }
      - { order: { id: 2, amount: 0 } }
      - { order: { id: 3, amount: 7 }, extra: ${long} }
    rows:
      - { order_id: 1, amount: 9.49, skus: [a] }
      - { order_id: 3, extra: '"${long.replace('X', 'Y')}"' }
  - name: "rows and dead letters are missing, or too many\\e[31m"
    records:
      - { order: { id: 1, amount: 1 } }
      - { order: { id: 2, amount: 2 } }
      - { order: { id: 3, amount: much } }
    rows:
      - { order_id: 2, topic: null }
      - { order_id: 4 }
    dropped: 1
  - name: the code of a dead letter
    records: [broken, {}]
    dead_letters:
      - { error_code: invalid_json }
      - { error_code: cast_failed, column: amount }
      - { error_code: cast_failed }
`),
  })
  expect(result).toEqual({
    code: 1,
    err: '',
    out: `FAIL orders: columns differ (setup/views/orders.test.yaml:5:5)
  rows[0].amount, of records[0]
    - "9.49"
    + "9.50"
  rows[0].skus, of records[0]
    - ["a"]
    + ["a", "b"]
  rows[1].extra, of records[2]
    - …${'a'.repeat(40)}Y${'b'.repeat(119)}…
    + …${'a'.repeat(40)}X${'b'.repeat(119)}…
  dropped, of records[1]
    - 0
    + 1

FAIL orders: rows and dead letters are missing, or too many\\u001b[31m (setup/views/orders.test.yaml:13:5)
  rows: one more, of records[0]
    + { order_id: "1", amount: "1.00", at: null, skus: null, extra: null, topic: null, site: null, request: null, protocol: "http", seen: "2026-01-01T00:00:00.000000Z…
  rows[1]: is missing
    - { order_id: "4" }
  dropped
    - 1
    + 0
  dead_letters: one more, of records[2]: the value "much" of column "amount" is not of type DECIMAL(12,2)
    + { error_code: "cast_failed", column: "amount" }

FAIL orders: the code of a dead letter (setup/views/orders.test.yaml:22:5)
  dead_letters[1].error_code, of records[1]
    - "cast_failed"
    + "missing_required"
  dead_letters[1].column, of records[1]
    - "amount"
    + "order_id"
  dead_letters[2]: is missing
    - { error_code: "cast_failed" }

- expected  + came out

3 of 4 cases failed.
`,
  })
})

test('all problems of all files are shown at once, with their places', async () => {
  const result = await testFiles({
    ...oneOrder(`cases:
  - { name: a, records: [], rows: [] }
  - { name: b, records: [1], droped: 3 }
  - { name: c, records: [1] }
  - { name: d, records: [12345678901234567890, { a: [.inf] }], dropped: 2 }
  - { name: e, records: [1], rows: [{ amoun: 1 }], dead_letters: [{ error_code: cast_failed, column: id }] }
  - { name: e, records: [1], dropped: 1 }
  - { name: f, records: [{ order: { id: 1, amount: 1 } }], rows: [{ order_id: x, amount: 1.005, at: 7, skus: 1, extra: "{" }] }
  - { name: g, envelope: { topics: a, received_at: yesterday }, records: [1], dropped: 1 }
`),
    'views/broken.yaml':
      'views: [{ name: broken, definition: { columns: [{ name: a, type: INT, path: $.a }], filters: [{ condition: b > 1 }] } }]',
    'views/broken.test.yaml': 'cases: [{ name: a, records: [1], dropped: 1 }]',
    'empty.test.yaml': '# nothing yet\n',
    'list.test.yaml': '- name: a\n',
    'lost.test.yaml': 'cases: [{ name: a, records: [1], dropped: 1 }]\n',
    'unknown.test.yaml': 'view: order\ncases: [{ name: a, records: [1], dropped: 1 }]\n',
    'two.yaml': 'views: []',
    'syntax.test.yaml': 'cases: [\n',
    'set-up.test.yaml': '# a set-up\nendpoints: []\n',
    // Only views are looked at.
    'other.yaml': `endpoints: [{ name: "\${UNSET}", region: nowhere at all }]`,
  })
  expect(result).toMatchObject({ code: 1, out: '' })
  const [count, , ...all] = result.err.trimEnd().split('\n')
  const [lines, excerpt] = [all.filter((line) => !line.startsWith(' ')), all.filter((line) => line.startsWith(' '))]
  expect(excerpt).toEqual(['    b > 1', '    ^'])
  expect(count).toBe('There are 22 problems with the set-up. No test was run.')
  const number = 'is a number that YAML cannot keep exactly: write it in quotes; for a record, write all of its JSON in quotes'
  const value = 'write a value that the column can have, or null'
  expect(lines).toEqual(
    [
      'empty.test.yaml: has no cases: begin with "cases:" and a list of name, records and rows, or delete the file',
      'list.test.yaml:1:1: has no cases: begin with "cases:" and a list of name, records and rows, or delete the file',
      'lost.test.yaml:1:1: has no view beside it: add "view: NAME", or name the file after the file of its view (the files declare broken, orders)',
      'set-up.test.yaml:2:12: endpoints: is not read from a file whose name ends in .test.yaml, which has tests of views: rename the file',
      'syntax.test.yaml:2:1: is not valid YAML: Flow sequence in block collection must be sufficiently indented and end with a ]',
      'unknown.test.yaml:1:7: view: is no view of the files: did you mean orders?',
      'views/broken.yaml:1:108: views[0].definition.filters[0].condition: "b" is not a column of this view',
      'views/orders.test.yaml:2:25: cases[0].records: must be a list of 1 to 1000 entries',
      'views/orders.test.yaml:3:38: cases[1].droped: is not a known field: known are name, envelope, records, rows, dropped, dead_letters',
      'views/orders.test.yaml:4:5: cases[2]: says nothing about the result: add rows, dropped or dead_letters, or write them with --update',
      `views/orders.test.yaml:5:26: cases[3].records[0]: ${number}`,
      `views/orders.test.yaml:5:54: cases[3].records[1].a[0]: ${number}`,
      'views/orders.test.yaml:6:46: cases[4].rows[0].amoun: names amoun, which is no column of the view: did you mean amount?',
      'views/orders.test.yaml:6:102: cases[4].dead_letters[0].column: names id, which is no column of the view: the view has order_id, amount, at, skus, extra, topic, site, request, protocol, seen',
      'views/orders.test.yaml:7:13: cases[5].name: is the name of another case: each needs its own',
      `views/orders.test.yaml:8:79: cases[6].rows[0].order_id: is not of type BIGINT: ${value}`,
      'views/orders.test.yaml:8:90: cases[6].rows[0].amount: is "1.01" as DECIMAL(12,2): write that',
      `views/orders.test.yaml:8:101: cases[6].rows[0].at: is not of type TIMESTAMP: ${value}`,
      `views/orders.test.yaml:8:110: cases[6].rows[0].skus: is not of type VARCHAR[]: ${value}`,
      `views/orders.test.yaml:8:120: cases[6].rows[0].extra: is not of type JSON: ${value}`,
      'views/orders.test.yaml:9:36: cases[7].envelope.topics: is not a known field: known are protocol, topic, client_id, content_type, address, key_name, headers, user_properties, received_at',
      'views/orders.test.yaml:9:52: cases[7].envelope.received_at: must be a time in ISO 8601 with Z or an offset (example: 2026-11-20T08:15:30Z)',
    ].map((line) => `setup/${line}`),
  )
})

test('a directory without tests says what to do', async () => {
  expect(await testFiles({ 'views/orders.yaml': orders })).toEqual({
    code: 1,
    out: '',
    err: 'setup has no tests: write one beside a view, such as views/orders.test.yaml. inlet init writes an example\n',
  })
  expect(await testFiles({ 'views/orders.yaml': orders }, 'nowhere')).toMatchObject({
    code: 1,
    err: 'there is no file or directory nowhere\n',
  })
  expect(await testFiles({ 'views/orders.yaml': orders }, 'a', 'b')).toMatchObject({ code: 2 })
})

const shop = `# Tests of the shop
cases:
  # One passes.
  - name: passes
    records: [{ order: { id: 1, amount: 1 } }]
    rows: [{ amount: 1.00 }]   # as a number

  - name: <one> & "another" fail
    records:
      - { order: { id: 1, amount: "9.50" } } # dear
      - { order: { id: 2, amount: 0 } }
      - { order: { id: 3, amount: 3 } }
      - { order: { id: 4, amount: much } }
      - { order: { amount: 5 } }
    rows:
      # The first.
      - { order_id: 1, amount: 9.49 }   # wrong
      - order_id: 5
    dead_letters:
      - { error_code: invalid_json, column: null } # why?
---
view: orders
cases:
- name: in another document
  records: [{ order: { id: 7, amount: 0 } }]
  rows: [{ order_id: 7 }]
- name: says nothing
  records: [{ order: { id: 8, amount: 1 } }, '{']
`

describe('for programs', () => {
  const tests = shop.slice(0, shop.indexOf('---'))

  test('--json has every case and difference', async () => {
    const { code, out, err } = await testFiles(oneOrder(tests), '--json')
    expect([code, err]).toEqual([1, ''])
    const { cases, ...others } = JSON.parse(out)
    expect(others).toEqual({ counts: { passed: 1, failed: 1 }, views_without_tests: [] })
    const file = 'setup/views/orders.test.yaml'
    expect(cases).toMatchObject([
      { view: 'orders', name: 'passes', file, line: 4, column: 5, passed: true, differences: [] },
      { view: 'orders', file, line: 8, column: 5, passed: false },
    ])
    expect(cases[1].differences.slice(0, 3)).toEqual([
      { path: 'rows[0].amount', records: [0], expected: '9.49', actual: '9.50' },
      { path: 'rows[1].order_id', records: [2], expected: '5', actual: '3' },
      { path: 'dropped', records: [1], expected: 0, actual: 1 },
    ])
  })

  test('--junit writes XML', async () => {
    const place = newPlace({ 'setup/views/orders.yaml': orders, 'setup/views/orders.test.yaml': tests })
    const { code, out } = await execute(process.execPath, [program, 'test', '--junit', 'report.xml'], place)
    expect([code, out]).toEqual([1, expect.stringContaining('1 of 2 cases failed.')])
    const report = readFileSync(join(place, 'report.xml'), 'utf8')
    expect(report).toContain(
      '<testsuites tests="2" failures="1" errors="0">\n  <testsuite name="orders" tests="2" failures="1" errors="0">\n',
    )
    expect(report).toContain('<testcase classname="orders" name="passes" file="setup/views/orders.test.yaml" line="4"/>')
    expect(report).toContain('name="&lt;one&gt; &amp; &quot;another&quot; fail"')
    expect(report).toContain('<failure message="rows[0].amount, rows[1].order_id, dropped,')
    expect(report.match(/<[a-z]/g)?.length).toBe((report.match(/<\/|\/>/g) ?? []).length)
  })
})

describe('--update', () => {
  test('shows what differs, writes what came out, and keeps everything else', async () => {
    const place = newPlace({ 'setup/views/orders.yaml': orders, 'setup/views/orders.test.yaml': shop })
    const inlet = (...args: readonly string[]) => execute(process.execPath, [program, 'test', ...args], place)
    const { code, out, err } = await inlet('--update')
    expect([code, err]).toEqual([0, ''])
    expect(out).toContain('    - "9.49"\n    + "9.50"\n')
    expect(out).toMatch(/3 of 4 cases failed\.\nUpdated 3 cases in setup\/views\/orders\.test\.yaml\.\n$/)
    expect(readFileSync(join(place, 'setup/views/orders.test.yaml'), 'utf8')).toBe(`# Tests of the shop
cases:
  # One passes.
  - name: passes
    records: [{ order: { id: 1, amount: 1 } }]
    rows: [{ amount: 1.00 }] # as a number

  - name: <one> & "another" fail
    records:
      - { order: { id: 1, amount: "9.50" } } # dear
      - { order: { id: 2, amount: 0 } }
      - { order: { id: 3, amount: 3 } }
      - { order: { id: 4, amount: much } }
      - { order: { amount: 5 } }
    rows:
      # The first.
      - { order_id: 1, amount: "9.50" } # wrong
      - order_id: "3"
    dead_letters:
      - { error_code: cast_failed, column: amount } # why?
      - { error_code: missing_required, column: order_id }
    dropped: 1
---
view: orders
cases:
- name: in another document
  records: [{ order: { id: 7, amount: 0 } }]
  dropped: 1
- name: says nothing
  records: [{ order: { id: 8, amount: 1 } }, '{']
  rows:
  - order_id: "8"
    amount: "1.00"
    at: null
    skus: null
    extra: null
    topic: null
    site: null
    request: null
    protocol: http
    seen: 2026-01-01T00:00:00.000000Z
  dead_letters:
  - { error_code: invalid_json }
`)
    expect(await inlet()).toEqual({ code: 0, out: '4 cases passed.\n', err: '' })
    expect(await inlet('--update')).toEqual({ code: 0, out: '4 cases passed.\n', err: '' })
  })

  test('writes nothing if an alias needs what would be replaced', async () => {
    const tests = `cases:
  - { name: a, records: [{ order: { id: 1, amount: 1 } }], rows: [&row { order_id: 1 }, { order_id: 2 }], dropped: 0 }
  - { name: b, records: [{ order: { id: 2, amount: 0 } }], rows: [&gone { order_id: 2 }] }
  - { name: c, records: [{ order: { id: 2, amount: 2 } }], rows: [*gone] }
`
    const place = newPlace({ 'setup/views/orders.yaml': orders, 'setup/views/orders.test.yaml': tests })
    const { code, err } = await execute(process.execPath, [program, 'test', '--update'], place)
    expect([code, err]).toEqual([1, expect.stringContaining('orders.test.yaml cannot be updated, because its aliases need')])
    expect(readFileSync(join(place, 'setup/views/orders.test.yaml'), 'utf8')).toBe(tests)
  })

  test.each([
    ['a record', 'records: [{ order: { id: 2, amount: 2 }, extra: *row }], rows: [{ order_id: 2 }]'],
    ['a record list', 'records: *rows, dropped: 2'],
  ])('does not change %s of another case through an alias', async (_, other) => {
    const tests = `cases:
  - { name: a, records: [{ order: { id: 1, amount: 1 } }], rows: &rows [&row { order_id: 7 }] }
  - { name: b, ${other} }
`
    const place = newPlace({ 'setup/views/orders.yaml': orders, 'setup/views/orders.test.yaml': tests })
    const { code, err } = await execute(process.execPath, [program, 'test', '--update'], place)
    expect([code, err]).toEqual([1, expect.stringContaining('orders.test.yaml cannot be updated, because its aliases need')])
    expect(readFileSync(join(place, 'setup/views/orders.test.yaml'), 'utf8')).toBe(tests)
  })

  test('leaves the file as it was if the disk takes no more', async () => {
    const one = `  - { name: long, records: [{ order: { id: 1, amount: 1 }, extra: ${'x'.repeat(9_000)} }], rows: [{ order_id: 2 }] }`
    const tests = `cases:\n${one}\n`
    const place = newPlace({ 'setup/views/orders.yaml': orders, 'setup/views/orders.test.yaml': tests })
    const limited = `trap '' XFSZ; ulimit -f 4; exec "$0" "$1" test --update`
    const { code, err } = await execute('sh', ['-c', limited, process.execPath, program], place)
    expect([code, err]).toEqual([1, expect.stringMatching(/cannot write .*orders\.test\.yaml: EFBIG/)])
    expect(readFileSync(join(place, 'setup/views/orders.test.yaml'), 'utf8')).toBe(tests)
    expect(readdirSync(join(place, 'setup/views')).toSorted()).toEqual(['orders.test.yaml', 'orders.yaml'])
  })
})

describe('hostile files', () => {
  test.each([
    [
      'a record that aliases make long',
      `a: &a ${JSON.stringify('x'.repeat(9_000))}\ncases:\n  - name: a\n    records: [[${'*a, '.repeat(150)}]]\n    dropped: 1\n`,
    ],
    ['a record that is long', `cases: [{ name: a, records: [${'x'.repeat(1_048_577)}], dropped: 1 }]`],
  ])('%s', async (_, tests) => {
    const result = await testFiles(oneOrder(tests))
    expect(result).toMatchObject({ code: 1, out: '' })
    expect(result.err).toContain('cases[0].records[0]: is longer than 1 MiB')
  })

  test('expected rows that aliases make long, and rows that are many', async () => {
    const long = `a: &a ${JSON.stringify('x'.repeat(90_000))}\n`
    const rows = `rows: [{ order_id: 1 }, { extra: [${'*a, '.repeat(100)}] }, { order_id: 2 }]`
    const aliased = await testFiles(oneOrder(`${long}cases: [{ name: a, records: [{}], ${rows} }]\n`))
    expect(aliased).toMatchObject({ code: 1, out: '' })
    const tooMuch = 'records, rows and dead letters of a view may have 8 MiB together. Test them in several files'
    expect(aliased.err).toContain(`cases[0].rows[1]: makes the rows too long: ${tooMuch}`)
    const row = `{ extra: ${'x'.repeat(1_000)} }`
    const cases = ['a', 'b', 'c'].map((name) => `  - { name: ${name}, records: [{}], rows: [${`${row}, `.repeat(1_200)}] }\n`)
    const many = { 'views/orders.yaml': orders, 'views/orders.test.yaml': `cases:\n${cases.join('')}` }
    expect((await testFiles(many)).err).not.toContain('too long')
  })

  test('a filter that is expensive ends in time', async () => {
    const view = `views: [{ name: orders, definition: { columns: [{ name: a, type: VARCHAR, path: $.a }], filters: [{ condition: "regexp_matches(a, '(x+x+)+y')" }] } }]`
    const record = JSON.stringify({ a: 'x'.repeat(500_000) })
    const tests = `cases: [{ name: a, records: ['${record}'], dropped: 1 }]`
    expect(await testFiles({ 'views/orders.yaml': view, 'views/orders.test.yaml': tests })).toMatchObject({ code: 0 })
  })
})

test('a hundred cases take less than a second of the processor, with the start of the program', async () => {
  const cases = Array.from({ length: 100 }, (_, index) => {
    const record = `{ order: { id: ${index}, amount: "${index + 1}.5" }, at: 2026-11-20T08:15:30Z, items: [{ sku: a }] }`
    return `  - name: case ${index}\n    records: [${record}]\n    rows: [{ order_id: ${index}, amount: ${index + 1}.5, at: 2026-11-20T08:15:30Z, skus: [a] }]\n`
  })
  const place = newPlace({ 'setup/views/orders.yaml': orders, 'setup/views/orders.test.yaml': `cases:\n${cases.join('')}` })
  const script = `TIMEFORMAT='%R %U %S'; time "$0" "$1" test`
  let fastest = Number.POSITIVE_INFINITY
  // A busy machine may need some tries: threads that share a core with others take more of it.
  for (let tries = 0; tries < 10 && fastest >= 1; tries += 1) {
    const { code, out, err } = await execute('bash', ['-c', script, process.execPath, program], place)
    expect([code, out]).toEqual([0, '100 cases passed.\n'])
    const [elapsed = 0, user = 0, system = 0] = err.trim().split(' ').map(Number)
    fastest = Math.min(fastest, user + system)
    console.log(`100 cases: ${elapsed} s, ${(user + system).toFixed(2)} s of the processor`)
  }
  expect(fastest).toBeLessThan(1)
})

test('a secret of the account is its name in tests, or a text of the file', async () => {
  const view = `views:
  - name: people
    definition:
      columns:
        - { name: email, type: VARCHAR, path: $.email, hidden: true }
        - { name: person, type: VARCHAR, value: "hmac_sha256('email_key', email)" }
`
  const cases = (person: string) => `cases:
  - name: a person is a hash
    records: [{ email: a@b.example }]
    rows: [{ person: ${person} }]
`
  const hash = (key: string) => createHmac('sha256', key).update('a@b.example').digest('hex')
  for (const [more, key] of [
    ['', 'email_key'],
    ['secrets: { email_key: another key }\n', 'another key'],
  ] as const) {
    const { code, out } = await testFiles({ 'people.yaml': view, 'people.test.yaml': more + cases(hash(key)) })
    expect([code, out]).toEqual([0, expect.stringContaining('1 case')])
  }
})

test('a case says who sent its records, and the JSON Schema has its fields', async () => {
  const view = `views:
  - name: senders
    definition:
      columns:
        - { name: sender, type: VARCHAR, path: $$.key_name }
        - { name: network, type: VARCHAR, value: "mask_ip($$.address)" }
`
  const tests = `cases:
  - name: a sender
    envelope: { address: 192.0.2.77, key_name: thermometer }
    records: [{}]
    rows: [{ sender: thermometer, network: 192.0.2.0 }]
`
  expect(await testFiles({ 'senders.yaml': view, 'senders.test.yaml': tests })).toMatchObject({ code: 0, err: '' })
  const { out } = await execute(process.execPath, [program, 'schema', '--tests'], newPlace({ empty: '' }))
  const { properties } = JSON.parse(out)
  expect(Object.keys(properties)).toEqual(['view', 'secrets', 'cases'])
  expect(Object.keys(properties.cases.items.properties.envelope.properties)).toContain('key_name')
})
