/** `inlet plan`, `apply` and `export`: a set-up in files, against a real control process. */
import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterAll, describe, expect, test, vi } from 'vitest'
import { applyChanges } from '#cli/setup/apply.ts'
import { makePlan } from '#cli/setup/plan.ts'
import { createClient } from '#client/client.ts'
import { systemClock } from '#lib/clock.ts'
import type { Scope } from '#model/api-key.ts'
import { runCli } from '../support/cli.ts'
import { clientOf as clientOfToken, newControl, newRegion, operatorToken, useControl } from '../support/control.ts'
import { doubleCredentials, S3Double } from '../support/s3/double.ts'
import { ScriptedProxy } from '../support/scripted-proxy.ts'
import { runs } from '../support/thorough.ts'

const directory = mkdtempSync(join(tmpdir(), 'inlet-setup-'))
const control = useControl({ environment: { INLET_PUBLIC_KEYS: 'true' } })
afterAll(() => rmSync(directory, { recursive: true }))

let places = 0

/** An account, and a directory for its set-up. */
async function newPlace(scopes?: readonly Scope[]) {
  const account = await control().newAccount(scopes)
  const files = join(directory, `setup-${places++}`)
  mkdirSync(files)
  const environment: Record<string, string> = { INLET_URL: control().url, INLET_API_KEY: account.api_key, HOME: directory }
  const inlet = (...args: readonly string[]) => runCli(args, { environment })
  const write = (name: string, text: string) => {
    mkdirSync(dirname(join(files, name)), { recursive: true })
    writeFileSync(join(files, name), text)
  }
  const keysTo = join(directory, `keys-${places}.json`)
  const apply = (...args: readonly string[]) => inlet('apply', '-f', files, '--yes', '--keys-to', keysTo, ...args)
  const plan = async (...args: readonly string[]) => {
    const { code, out, err } = await inlet('plan', '-f', files, '--json', ...args)
    expect([code, err]).toEqual([0, ''])
    return JSON.parse(out)
  }
  return { ...{ account, files, environment, inlet, write, apply, plan, keysTo } }
}

type Place = Awaited<ReturnType<typeof newPlace>>

async function clientOf({ account: { api_key: apiKey } }: Place) {
  return { client: createClient({ url: control().url, apiKey }), apiKey }
}

const quiet = {
  clock: systemClock,
  keepSecret: async () => {},
  signal: new AbortController().signal,
  onDone: () => {},
  onWait: () => {},
}

const role = 'arn:aws:iam::000000000000:role/none'

const orders = `views:
  - name: orders
    description: Orders as they arrive
    definition:
      columns:
        - { name: id, type: BIGINT, path: $.id, required: true }
        - { name: amount, type: "DECIMAL(12,2)", path: $.amount, cast_failures: dlq }
      filters:
        - condition: |
            amount > 0
            AND id IS NOT NULL
`

const shop = (region: string) => `# The shop
destinations:
  - name: lake
    bucket: lake
    region: eu-central-1
    role_arn: ${role}
endpoints:
  - name: shop
    region: ${region}
    destination: lake
    segment_max_age_seconds: 5
${orders}bindings:
  - { endpoint: shop, view: orders }
keys:
  - name: till
    scopes: [ingest]
    endpoints: [shop]
`

describe('apply', () => {
  test('creates what files declare, and a second run has no changes', async () => {
    const { write, inlet, files, apply, plan, keysTo, account } = await newPlace()
    write('shop.yaml', shop(newRegion()))
    const shown = await inlet('plan', '-f', files)
    expect([shown.code, shown.err]).toEqual([0, ''])
    for (const line of [
      '  + destination lake',
      '      bucket: lake',
      '  + endpoint shop',
      '      destination: lake',
      '  + view orders',
      '            amount > 0',
      '  + binding shop → orders',
      '  + key till',
      '5 to create, 0 to change, 0 to delete.',
    ])
      expect(shown.out.split('\n').map((each) => each.trimEnd())).toContainEqual(expect.stringContaining(line))
    expect((await account.get('/v1/endpoints')).body.items).toEqual([])
    const applied = await apply()
    expect([applied.code, applied.err]).toEqual([0, ''])
    expect(applied.out).toContain('Done: 5 created, 0 changed, 0 deleted.')
    const secrets = JSON.parse(readFileSync(keysTo, 'utf8'))
    expect(Object.keys(secrets)).toEqual(['till'])
    expect(secrets.till).toMatch(/^ing_live_/)
    expect(statSync(keysTo).mode & 0o777).toBe(0o600)
    expect(applied.out).not.toContain(secrets.till)
    const [endpoint] = (await account.get('/v1/endpoints')).body.items
    expect(endpoint).toMatchObject({ name: 'shop', destination_name: 'lake', segment_max_age_seconds: 5 })
    expect((await account.get(`/v1/endpoints/${endpoint.id}/views`)).body.items).toMatchObject([
      { view_name: 'orders', view_version: 1, status: 'active' },
    ])
    expect((await account.get('/v1/destinations')).body.items).toMatchObject([{ name: 'lake', status: 'valid' }])
    expect((await plan()).changes).toEqual([])
    const again = await apply()
    expect([again.code, again.out]).toEqual([0, expect.stringContaining('No changes')])
    expect((await inlet('plan', '-f', files, '--exit-code')).code).toBe(0)
  })

  test('prints what the API warns of when it publishes and attaches a view', async () => {
    const setUp = async () => {
      const place = await newPlace()
      place.write(
        'shop.yaml',
        shop(newRegion())
          .replace('name: amount, ', 'name: at, ')
          .replace('amount > 0', '"at" > 0')
          .replace('path: $.id,', () => 'path: $$.key_name,')
          .replace('type: BIGINT', 'type: VARCHAR'),
      )
      return place
    }
    const { code, out, err } = await (await setUp()).apply()
    expect([code, err]).toEqual([0, ''])
    expect(out).toMatch(/view orders: created\n {2}warning: definition\.columns\.1\.name: is a reserved word in DuckDB/)
    expect(out).toMatch(
      /binding shop → orders: created\n {2}warning: the view reads \$\$\.key_name, which this endpoint does not keep/,
    )
    const { changes } = JSON.parse((await (await setUp()).apply('--json')).out)
    const warned = changes.filter((change: object) => 'warnings' in change)
    expect(warned).toMatchObject([
      { kind: 'views', warnings: [expect.stringContaining('is a reserved word')] },
      { kind: 'bindings', status: 'done', warnings: [expect.stringContaining('$$.key_name')] },
    ])
  })
})

describe('plan', () => {
  test('shows each field that differs, old and new, and lines of a definition', async () => {
    const { write, inlet, files, apply } = await newPlace()
    const region = newRegion()
    write('shop.yaml', shop(region))
    expect((await apply()).code).toBe(0)
    write(
      'shop.yaml',
      shop(region)
        .replace('segment_max_age_seconds: 5', 'kept_headers: [X-GitHub-Event]\n    kept_fields: [key_name, address_masked]')
        .replace('amount > 0', 'amount > 10')
        .replace('bucket: lake', 'bucket: other-lake'),
    )
    const { out, code } = await inlet('plan', '-f', files, '--exit-code')
    expect(code).toBe(3)
    expect(out).toBe(`  ~ destination lake
      bucket: lake → other-lake

  ~ endpoint shop
      segment_max_age_seconds: 5 → 60
      kept_headers: [] → [x-github-event]
      kept_fields: [] → [address_masked, key_name]

  ~ view orders
      definition:
        …
          filters:
            - condition: |
        -       amount > 0
        +       amount > 10
                AND id IS NOT NULL
      (version 1 → 2, with files in a folder of its own)

  ~ binding shop → orders
      version: 1 → 2

0 to create, 4 to change, 0 to delete.

Not in the files, and kept:
  keys: test
`)
    control().clock.advance(31_000)
    expect((await apply()).out).toContain('Done: 0 created, 4 changed, 0 deleted.')
    expect((await inlet('plan', '-f', files)).out).toMatch(/^No changes: the account is as the files say.\n/)
  })

  test('a version that is older than the choice of lists matches files with and without it, and its export keeps what it means', async () => {
    const { write, inlet, files, apply } = await newPlace()
    const views = (rest: string) => `views:
  - name: skus
${rest}    definition:
      columns:
        - { name: skus, type: 'VARCHAR[]', path: '$.items[*].sku' }
`
    write('views.yaml', views(''))
    expect((await apply()).code).toBe(0)
    const definition = JSON.stringify({ columns: [{ name: 'skus', type: 'VARCHAR[]', path: '$.items[*].sku' }] })
    await control().store.db.updateTable('views').set({ definition }).where('name', '=', 'skus').execute()
    expect((await inlet('plan', '-f', files)).out).toMatch(/^No changes/)
    const to = join(files, 'exported')
    await inlet('export', '-f', to)
    expect(readFileSync(join(to, 'views/skus.yaml'), 'utf8')).toContain('\n      lists: packed\n')
    expect((await inlet('plan', '-f', join(to, 'views'))).out).toMatch(/^No changes/)
    write('views.yaml', views('    description: new\n'))
    expect((await inlet('plan', '-f', join(files, 'views.yaml'))).out).toContain(`  ~ view skus
      description: "" → new
      (version 1 → 2, with files in a folder of its own)
      (lists hold NULL for each element of [*] without a value, which version 1 leaves out; to leave them out, set lists: packed)
`)
    write('views.yaml', `${views('    description: new\n')}      lists: packed\n`)
    expect((await inlet('plan', '-f', join(files, 'views.yaml'))).out).toContain(`  ~ view skus
      description: "" → new
      (version 1 → 2, with files in a folder of its own)

`)
  })

  test('a key that may only read can plan, but not compare keys', async () => {
    const { write, inlet, files, apply } = await newPlace(['metrics'])
    write('shop.yaml', shop(newRegion()))
    const shown = await inlet('plan', '-f', files)
    expect([shown.code, shown.out]).toEqual([0, expect.stringContaining('The keys are not compared')])
    expect(shown.out).toContain('4 to create')
    expect(await apply()).toMatchObject({ code: 1, err: expect.stringContaining('has no scope admin') })
  })

  test('reads a pipe, many files and documents', async () => {
    const { write, inlet, files } = await newPlace()
    const region = newRegion()
    write(
      'a/b/one.yml',
      `endpoints: [{ name: one, region: ${region} }]\n---\n# nothing\n---\nendpoints:\n- { name: two, region: ${region} }\n`,
    )
    write('.hidden/three.yaml', 'nonsense')
    write('notes.txt', 'nonsense')
    write('json.yaml', JSON.stringify({ keys: [] }))
    const { out } = await inlet('plan', '-f', files, '-f', join(files, 'a/b/one.yml'))
    expect(out).toContain('2 to create')
  })
})

describe('problems', () => {
  test('are shown all at once, with the place and what to do, before anything is changed', async () => {
    const { write, apply, files, account, environment } = await newPlace()
    environment['INLET_VAR_BUCKET'] = 'lake'
    environment['SECRET'] = 'never-shown'
    write(
      'a.yaml',
      `destinations:
  - name: lake
    bucket: \${BUCKET}
    region: \${SECRET}
    role_arn: ${role}
  - { name: lake, bucket: lake, region: x, role_arn: ${role} }
  - { name: keyed, bucket: lake, region: x, role_arn: ${role}, encryption: kms }
endpoint: []
views: {}
endpoints:
  - name: shop
    region: nowhere
    destination: late
    segment_bytes: 5
    speed: high
`,
    )
    write(
      'b.yaml',
      `bindings:
  - { endpoint: shop, view: orders }
  - { endpoint: nobody, view: broken }
views:
  - name: broken
    definition:
      columns:
        - { name: a, type: NUMBER, path: $.a }
      filters:
        - condition: b > 1
keys:
  - { name: k, scopes: [admin], endpoints: [shop] }
`,
    )
    write('c.yaml', 'endpoints:\n  - name: "x\n')
    const { code, err, out } = await apply()
    expect([code, out]).toEqual([1, ''])
    const lines = err.replaceAll(`${files}/`, '').split('\n')
    expect(lines[0]).toMatch(/^There are \d+ problems with the set-up. Nothing was changed.$/)
    for (const line of [
      /^a.yaml:4:13: destinations\[0\].region: names the variable SECRET, which is not set: set INLET_VAR_SECRET$/,
      /^a.yaml:7:\d+: destinations\[2\].kms_key_arn: must be the ARN of a KMS key/,
      /^a.yaml:8:11: endpoint: is not known: did you mean endpoints\?$/,
      /^a.yaml:9:8: views: must be a list/,
      /^a.yaml:12:13: endpoints\[0\].region: must be a region code of three lowercase letters/,
      /^a.yaml:14:20: endpoints\[0\].segment_bytes: must be from 8 MB to 1 GB/,
      /^a.yaml:15:12: endpoints\[0\].speed: is not a known field: known are name, region/,
      /^b.yaml:2:29: bindings\[0\].view: there is no published view orders: declare it, or create it first/,
      /^b.yaml:3:17: bindings\[1\].endpoint: there is no endpoint nobody/,
      /^b.yaml:8:\d+: views\[0\].definition.columns\[0\].type: /,
      /^b.yaml:12:\d+: keys\[0\].endpoints: must be null for a key with the scope admin/,
      /^c.yaml:3:1: is not valid YAML/,
    ])
      expect(lines).toContainEqual(expect.stringMatching(line))
    expect(err).not.toContain('never-shown')
    for (const path of ['destinations', 'endpoints', 'views?status=all'])
      expect((await account.get(`/v1/${path}`)).body.items).toEqual([])
  })
})

describe('--prune', () => {
  test('deletes what is in no file, of the kinds that the files have, and never the key of the command', async () => {
    const { write, apply, plan, account, inlet, files } = await newPlace()
    const region = newRegion()
    write('shop.yaml', shop(region))
    expect((await apply()).code).toBe(0)
    write('shop.yaml', 'endpoints: []\nkeys: []\nbindings: []\n')
    expect((await plan()).changes).toEqual([])
    const { changes, kept } = await plan('--prune')
    expect(changes.map(({ action, kind, name }: Record<string, string>) => [action, kind, name])).toEqual([
      ['delete', 'keys', 'till'],
      ['delete', 'endpoints', 'shop'],
    ])
    expect(kept.map(({ name }: Record<string, string>) => name)).toEqual(['lake', 'orders', 'test'])
    write('shop.yaml', 'destinations: []\nendpoints: []\nviews: []\nkeys: []\nbindings: []\n')
    const shown = await inlet('plan', '-f', files, '--prune')
    expect(shown.out).toContain('0 to create, 0 to change, 4 to delete.')
    expect(shown.out).toContain('The key test is in no file, and is kept because this command uses it.')
    expect(await apply('--prune')).toMatchObject({ code: 0, err: '' })
    expect((await plan('--prune')).changes).toEqual([])
    for (const path of ['destinations', 'endpoints', 'views']) expect((await account.get(`/v1/${path}`)).body.items).toEqual([])
  })

  test('refuses what the files still need', async () => {
    const { write, apply } = await newPlace()
    const region = newRegion()
    write('shop.yaml', shop(region))
    expect((await apply()).code).toBe(0)
    write('shop.yaml', `endpoints:\n  - { name: shop, region: ${region}, destination: lake }\ndestinations: []\n`)
    const { code, err } = await apply('--prune')
    expect([code, err]).toEqual([1, expect.stringContaining('endpoints[0].destination: names lake, which is in no file')])
  })
})

test('tests of views are no part of a set-up, and a set-up in a file of that name is a problem', async () => {
  const { write, plan, inlet, files } = await newPlace()
  write('shop.yaml', `endpoints: [{ name: shop, region: ${newRegion()} }]`)
  write('views/orders.test.yaml', 'cases: nonsense')
  expect((await plan('--prune')).counts).toEqual({ create: 1, change: 0, delete: 0 })
  for (const [text, place] of [
    ['# A comment\nviews: []', '2:8: views'],
    ['{"endpoints": []}', '1:15: endpoints'],
    ['? endpoints\n: []', '2:3: endpoints'],
    ['cases: []\n---\n  "endpoin\\x74s" : []', '3:20: endpoints'],
  ] as const) {
    write('views/orders.test.yml', text)
    const { code, err } = await inlet('plan', '-f', files)
    expect([code, err]).toEqual([
      1,
      expect.stringContaining(`orders.test.yml:${place}: is not read from a file whose name ends in`),
    ])
  }
})

test('an expression that is wrong is shown with its place', async () => {
  const { write, inlet, files } = await newPlace()
  const column = '{ name: c, type: VARCHAR, value: "lower(nmae)" }'
  write(
    'views.yaml',
    `views:\n  - name: orders\n    definition: { columns: [{ name: name, type: VARCHAR, path: $.n }, ${column}] }`,
  )
  const { code, err } = await inlet('plan', '-f', files)
  expect([code, err]).toEqual([
    1,
    expect.stringContaining('"nmae" is not a column of this view: did you mean "name"?\n    lower(nmae)\n          ^'),
  ])
})

describe('what others do', () => {
  test('a change between plan and apply is not overwritten', async () => {
    const place = await newPlace()
    const region = newRegion()
    place.write('shop.yaml', shop(region))
    expect((await place.apply()).code).toBe(0)
    const [endpoint] = (await place.account.get('/v1/endpoints')).body.items
    place.write('shop.yaml', shop(region).replace('seconds: 5', 'seconds: 6'))
    const plan = await makePlan({ ...(await clientOf(place)), environment: {}, paths: [place.files], prune: false })
    await place.account.patch(`/v1/endpoints/${endpoint.id}`, { segment_max_age_seconds: 9 })
    const outcomes = await applyChanges(plan, { ...(await clientOf(place)), ...quiet })
    expect(outcomes).toMatchObject([{ status: 'failed', message: expect.stringContaining('was changed by somebody else') }])
    expect((await place.account.get('/v1/endpoints')).body.items).toMatchObject([{ segment_max_age_seconds: 9 }])
    expect((await place.apply()).code).toBe(0)
  })

  test('two at once end in what the files say, once it is run again', { timeout: 60_000 }, async () => {
    const place = await newPlace()
    const region = newRegion()
    place.write('shop.yaml', shop(region))
    const two = await Promise.all([place.apply(), place.apply('--json')])
    expect(two.map(({ code }) => code)).toContainEqual(expect.toBeOneOf([0, 1]))
    control().clock.advance(31_000)
    expect(await place.apply()).toMatchObject({ code: 0 })
    expect((await place.plan()).changes).toEqual([])
    const keys = (await place.account.get('/v1/keys')).body.items.filter(
      (key: { name: string; revoked_at: string | null }) => key.name === 'till' && key.revoked_at === null,
    )
    expect(keys).toHaveLength(1)
    const [endpoint] = (await place.account.get('/v1/endpoints')).body.items
    for (let amount = 1; amount <= runs(3, 20); amount++) {
      place.write('shop.yaml', shop(region).replace('amount > 0', `amount > ${amount}`))
      await Promise.all([place.apply(), place.apply(), place.apply()])
      expect(await place.apply()).toMatchObject({ code: 0 })
      expect((await place.plan()).changes).toEqual([])
      const { items } = (await place.account.get(`/v1/endpoints/${endpoint.id}/views`)).body
      expect(items.filter(({ status }: { status: string }) => status === 'active')).toHaveLength(1)
    }
  })

  const faults = ['lose-response', 'refuse', 'cut-response'] as const

  test.each(faults)('%s of any request leaves nothing that a second run cannot finish', { timeout: 120_000 }, async (fault) => {
    await using proxy = await ScriptedProxy.start(control().url)
    const run = async (at: number | undefined) => {
      const place = await newPlace()
      place.write('shop.yaml', shop(newRegion()))
      proxy.seen.length = 0
      // So many requests fail that the client gives up.
      if (at !== undefined) proxy.script(...Array(at).fill('pass'), ...Array(5).fill(fault))
      const { code, err } = await runCli(['apply', '-f', place.files, '--yes', '--keys-to', place.keysTo], {
        environment: { ...place.environment, INLET_URL: proxy.url },
      })
      return { ...place, code, err, requests: proxy.seen.length }
    }
    const { code, requests } = await run(undefined)
    expect(code).toBe(0)
    expect(requests).toBeGreaterThan(15)
    const step = runs(8, 1)
    const errors: string[] = []
    // Each fault at other requests, if it is not done at all of them.
    for (let at = faults.indexOf(fault) % step; at < requests; at += step) {
      const { apply, plan, account, keysTo, err } = await run(at)
      errors.push(err)
      proxy.clear()
      control().clock.advance(31_000)
      expect(await apply(), `request ${at}`).toMatchObject({ code: 0 })
      expect((await plan()).changes).toEqual([])
      const { till } = JSON.parse(readFileSync(keysTo, 'utf8'))
      expect((await account.post('/v1/token/exchange', { api_key: till, scope: 'ingest' })).status, `request ${at}`).toBe(200)
      expect((await account.get('/v1/views?status=all')).body.items).toMatchObject([{ version: 1, status: 'published' }])
      const [endpoint] = (await account.get('/v1/endpoints')).body.items
      expect((await account.get(`/v1/endpoints/${endpoint.id}/views`)).body.items).toHaveLength(1)
    }
    expect(errors).toContainEqual(
      expect.stringMatching(
        /^\nNot all is done: \d of 5 changes are made\.\nFailed:\n {2}.*Not tried:\n.*Run the same command again to continue\.\n$/s,
      ),
    )
  })

  test('drafts are kept, and a binding follows the newest version or keeps its own', async () => {
    const place = await newPlace()
    const region = newRegion()
    place.write('shop.yaml', shop(region))
    expect((await place.apply()).code).toBe(0)
    const [view] = (await place.account.get('/v1/views')).body.items
    const draft = (await place.account.post(`/v1/views/${view.id}/versions`, { description: 'mine' })).body
    place.write('shop.yaml', shop(region).replace('amount > 0', 'amount > 1'))
    expect(await place.apply()).toMatchObject({ code: 0, out: expect.stringContaining('version 1 → 3') })
    expect((await place.account.get(`/v1/views/${draft.id}`)).body).toMatchObject({ status: 'draft', description: 'mine' })
    const [endpoint] = (await place.account.get('/v1/endpoints')).body.items
    const versions = async () =>
      (await place.account.get(`/v1/endpoints/${endpoint.id}/views`)).body.items
        .filter(({ status }: { status: string }) => status === 'active')
        .map(({ view_version }: { view_version: number }) => view_version)
    expect(await versions()).toEqual([3])
    const pinned = shop(region)
      .replace('amount > 0', 'amount > 1')
      .replace('view: orders }', 'view: orders }\n  - { endpoint: shop, view: orders, version: 1, is_required: true }')
    place.write('shop.yaml', pinned)
    expect(await place.apply()).toMatchObject({ code: 0, out: expect.stringContaining('shop → orders version 1') })
    expect((await versions()).toSorted()).toEqual([1, 3])
    place.write('shop.yaml', pinned.replace('version: 1', 'version: 2'))
    expect((await place.inlet('plan', '-f', place.files)).err).toContain('no published version 2: published are 3, 1.')
  })
})

describe('keys', () => {
  test('with other rights are new keys, and the old one stays until it is pruned', async () => {
    const place = await newPlace()
    place.write('keys.yaml', 'keys:\n  - { name: loader, scopes: [query] }\n')
    expect((await place.apply()).code).toBe(0)
    const first = JSON.parse(readFileSync(place.keysTo, 'utf8')).loader
    place.write('keys.yaml', 'keys:\n  - { name: loader, scopes: [metrics, query] }\n  - { name: x, scopes: [query] }\n')
    const shown = await place.inlet('plan', '-f', place.files)
    expect(shown.out).toContain('scopes: [query] → [metrics, query]')
    expect(shown.out).toContain('the one before works until --prune revokes it')
    expect((await place.apply()).code).toBe(0)
    const secrets = JSON.parse(readFileSync(place.keysTo, 'utf8'))
    expect(Object.keys(secrets)).toEqual(['loader', 'x'])
    expect(secrets.loader).not.toBe(first)
    expect((await place.plan()).changes).toEqual([])
    expect((await place.plan('--prune')).changes).toMatchObject([{ action: 'delete', name: 'loader' }])
    expect((await place.apply('--prune')).code).toBe(0)
    expect(
      (await runCli(['endpoints', 'list'], { environment: { ...place.environment, INLET_API_KEY: secrets.loader } })).code,
    ).toBe(0)
    expect((await runCli(['endpoints', 'list'], { environment: { ...place.environment, INLET_API_KEY: first } })).code).toBe(1)
  })

  test('that were created although a proxy reported a failure are revoked, and created again', async () => {
    await using proxy = await ScriptedProxy.start(control().url)
    const run = async (passed: number | undefined) => {
      const place = await newPlace()
      place.write('keys.yaml', 'keys:\n  - { name: loader, scopes: [query] }\n')
      proxy.seen.length = 0
      if (passed !== undefined) proxy.script(...Array(passed).fill('pass'), 'bad-gateway')
      const environment = { ...place.environment, INLET_URL: proxy.url }
      return { ...place, ...(await runCli(['apply', '-f', place.files, '--yes', '--keys-to', place.keysTo], { environment })) }
    }
    expect((await run(undefined)).code).toBe(0)
    const { code, err, apply, keysTo, account } = await run(proxy.seen.indexOf('POST /v1/keys'))
    expect([code, err]).toEqual([1, expect.stringContaining('key loader: not created: the server responded with status 502')])
    expect((await apply()).out).toContain('key loader: created')
    const { loader } = JSON.parse(readFileSync(keysTo, 'utf8'))
    expect((await account.post('/v1/token/exchange', { api_key: loader, scope: 'query' })).status).toBe(200)
  })

  test('need a place for their secrets where nobody sees a terminal', async () => {
    const { write, inlet, files, account } = await newPlace()
    write('keys.yaml', 'keys:\n  - { name: loader, scopes: [query] }\n')
    expect(await inlet('apply', '-f', files, '--yes')).toMatchObject({
      code: 2,
      err: expect.stringContaining('--keys-to FILE must say'),
    })
    for (const [name, content] of [
      ['other.json', '[1]'],
      ['text', 'mine'],
    ] as const) {
      write(name, content)
      const refused = await inlet('apply', '-f', files, '--yes', '--keys-to', join(files, name))
      expect([refused.code, refused.err]).toEqual([1, expect.stringContaining('has something else than keys')])
      expect(readFileSync(join(files, name), 'utf8')).toBe(content)
    }
    expect((await account.get('/v1/keys')).body.items).toHaveLength(1)
  })

  test('nothing is done without an answer', async () => {
    const { write, inlet, files, account } = await newPlace()
    write('shop.yaml', `endpoints: [{ name: a, region: ${newRegion()} }]`)
    expect(await inlet('apply', '-f', files)).toMatchObject({
      code: 2,
      err: expect.stringContaining('These changes will be made. Add --yes to do it'),
    })
    expect((await account.get('/v1/endpoints')).body.items).toEqual([])
  })
})

describe('quotas', () => {
  test('are a problem before anything is created', async () => {
    const { write, inlet, files, account } = await newPlace()
    const operator = clientOfToken(control().call, operatorToken)
    const quotas = { endpoints: 1, views: 0, view_versions: 0, api_keys: 1 }
    expect((await operator.patch(`/v1/accounts/${account.account_id}`, { quotas })).status).toBe(200)
    write('shop.yaml', shop(newRegion()).replace('views:\n', '  - { name: other, region: fra }\nviews:\n'))
    const { err } = await inlet('plan', '-f', files)
    for (const [name, limit, used] of [
      ['endpoints', 1, 2],
      ['views', 0, 1],
      ['view_versions', 0, 1],
      ['api_keys', 1, 2],
    ])
      expect(err).toContain(`the quota ${name} is ${limit}, and ${used} would be used: ask the operator for more`)
  })
})

describe('destinations on S3', () => {
  test('that cannot be written to are a failure, until they can', async () => {
    await using double = await S3Double.start()
    vi.stubEnv('AWS_ACCESS_KEY_ID', doubleCredentials.accessKeyId)
    vi.stubEnv('AWS_SECRET_ACCESS_KEY', doubleCredentials.secretAccessKey)
    const s3 = { INLET_OBJECT_STORE: 's3', INLET_S3_ENDPOINT: double.url, INLET_STS_ENDPOINT: double.url }
    await using remote = await newControl({ environment: s3 })
    const { api_key } = await remote.newAccount()
    const file = join(directory, 's3.yaml')
    const arn = 'arn:aws:iam::222222222222:role/lake'
    writeFileSync(
      file,
      `destinations: [{ name: lake, bucket: lake, region: eu-central-1, role_arn: "${arn}", path_style: true }]`,
    )
    const apply = () => runCli(['apply', '-f', file, '--yes'], { environment: { INLET_URL: remote.url, INLET_API_KEY: api_key } })
    const first = await apply()
    expect(first).toMatchObject({ code: 1, out: expect.stringContaining('Done: 1 created') })
    expect(first.err).toContain('these destinations cannot be written to, so their endpoints deliver nothing:\n  lake: ')
    const client = createClient({ url: remote.url, apiKey: api_key })
    const { items } = await client.listDestinations()
    double.addBucket('lake')
    double.addRole(arn, { externalId: items[0]?.external_id ?? '' })
    remote.clock.advance(31_000)
    expect(await apply()).toMatchObject({
      code: 0,
      err: '',
      out: expect.stringContaining('Checking whether lake can be written to'),
    })
    expect(await apply()).toMatchObject({
      code: 0,
      out: 'No changes: the account is as the files say.\n\nNot in the files, and kept:\n  keys: test\n',
    })
    vi.unstubAllEnvs()
  })
})

describe('hostile files', () => {
  test('are bounded, and symbolic links do not leave the directory', async () => {
    const { write, inlet, files } = await newPlace()
    const region = newRegion()
    write('good/a.yaml', `endpoints: [{ name: a, region: ${region} }]`)
    symlinkSync(join(files, 'good'), join(files, 'again'))
    symlinkSync(join(files, 'good/a.yaml'), join(files, 'same.yaml'))
    symlinkSync('.', join(files, 'good/loop'))
    expect((await inlet('plan', '-f', files)).out).toContain('1 to create')
    symlinkSync('/etc/passwd', join(files, 'passwd.yaml'))
    symlinkSync('/', join(files, 'root'))
    symlinkSync(join(files, 'nothing'), join(files, 'nowhere.yaml'))
    write('large.yaml', `# ${'x'.repeat(5 * 1024 * 1024)}`)
    write('deep.yaml', '['.repeat(100_000))
    write(
      'laughs.yaml',
      Array.from(
        { length: 12 },
        (_, n) =>
          `a${n}: &a${n} [${
            n === 0
              ? 'ha'
              : Array(9)
                  .fill(`*a${n - 1}`)
                  .join(', ')
          }]`,
      ).join('\n'),
    )
    writeFileSync(join(files, 'bytes.yaml'), Buffer.from([0x61, 0xff]))
    mkdirSync(join(files, 'directory.yaml'))
    execFileSync('mkfifo', [join(files, 'pipe.yaml')])
    const { code, err } = await inlet('plan', '-f', files)
    expect(code).toBe(1)
    const lines = err.replaceAll(`${files}/`, '').split('\n')
    for (const line of [
      /^bytes.yaml: is not UTF-8$/,
      /^deep.yaml: is nested too deep/,
      /^large.yaml: is larger than 4 MiB/,
      /^laughs.yaml: .*alias count/,
      /^nowhere.yaml: cannot be read: it leads to nothing$/,
      /^passwd.yaml: is a symbolic link that leaves the directory/,
      /^pipe.yaml: is not a file$/,
      /^root: is a symbolic link that leaves the directory/,
    ])
      expect(lines).toContainEqual(expect.stringMatching(line))
    expect(err).not.toContain('root:x:0')
  })

  test('show no control characters on a terminal', async () => {
    const { write, inlet, files } = await newPlace()
    write(
      'a.yaml',
      '"\\e[2J\\u202e": []\nviews:\n  - { name: a, description: "\\e[31m\\u202eevil", definition: { columns: [{ name: a, type: X, path: "$.\\e[0m" }] } }\n',
    )
    const { out, err } = await inlet('plan', '-f', files)
    expect(`${out}${err}`).not.toMatch(/[^\P{Cc}\n]|\u202e/u)
    expect(err).toContain('\\u001b[2J\\u202e: is not known')
  })
})

describe('export', () => {
  test('writes files that make an empty plan, and replaces none unless it is asked to', async () => {
    const place = await newPlace()
    place.write('shop.yaml', shop(newRegion()))
    expect((await place.apply()).code).toBe(0)
    const to = join(place.files, 'exported')
    const { out, code } = await place.inlet('export', '-f', to)
    expect([code, out]).toEqual([0, `Wrote 5 files and setup.schema.json to ${to}.\n`])
    expect(readdirSync(to, { recursive: true }).toSorted()).toEqual(
      'bindings.yaml destinations.yaml endpoints.yaml keys.yaml setup.schema.json views views/orders.yaml'.split(' '),
    )
    expect(readFileSync(join(to, 'views/orders.yaml'), 'utf8')).toBe(`# yaml-language-server: $schema=../setup.schema.json

${orders}`)
    expect((await place.inlet('plan', '-f', to)).out).toMatch(/^No changes/)
    expect(await place.inlet('export', '-f', to)).toMatchObject({ code: 1, err: expect.stringContaining('has files already') })
    expect(await place.inlet('export', '-f', to, '--overwrite')).toMatchObject({ code: 0, err: '' })
  })

  test('says which secrets are to be created elsewhere', async () => {
    const place = await newPlace()
    for (const name of ['email_key', 'key_2']) await place.account.post('/v1/secrets', { name })
    const value = "coalesce(hmac_sha256('key_2', email), HMAC_SHA256( 'email_key', email))"
    const columns = [
      { name: 'email', type: 'VARCHAR', path: '$.email', hidden: true },
      { name: 'person', type: 'VARCHAR', value },
    ]
    const { body: view } = await place.account.post('/v1/views', { name: 'people', definition: { columns } })
    expect((await place.account.post(`/v1/views/${view.id}/publish`)).status).toBe(200)
    const { err } = await place.inlet('export', '-f', join(place.files, 'exported'))
    expect(err).toBe(
      'Values of secrets are left out: create email_key, key_2 before you apply the files elsewhere, for the views people.\n',
    )
  })

  test('says which bindings name a version that the files do not have', async () => {
    const place = await newPlace()
    place.write('shop.yaml', shop(newRegion()))
    expect((await place.apply()).code).toBe(0)
    const { body } = await place.account.get('/v1/views')
    const { body: next } = await place.account.post(`/v1/views/${body.items[0].id}/versions`)
    expect((await place.account.post(`/v1/views/${next.id}/publish`)).status).toBe(200)
    const { code, err } = await place.inlet('export', '-f', join(place.files, 'exported'))
    expect(code).toBe(0)
    expect(err).toMatch(
      /^Only the newest version of orders is written, and \S+ has version 1: to apply the files to an account without that version, remove `version: 1` from the binding\.$/m,
    )
  })
})
