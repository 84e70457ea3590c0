/** `inlet login` and the commands about the things of an account, against a real control process. */
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { runCli } from '../support/cli.ts'
import { clientOf, newControl, newRegion, operatorToken, useControl } from '../support/control.ts'
import { aLag } from '../support/lags.ts'
import { readMarkers } from '../support/read-markers.ts'
import { TestNode } from '../support/test-node.ts'

const directory = mkdtempSync(join(tmpdir(), 'inlet-login-'))
const control = useControl()
afterAll(() => rmSync(directory, { recursive: true }))

let homes = 0

/** A user of a new account, with an empty home directory. */
async function newUser(scopes?: ('admin' | 'metrics' | 'query' | 'ingest')[], at = control()) {
  const home = join(directory, `home-${homes++}`)
  const { api_key } = await at.newAccount(scopes)
  const keyFile = join(directory, `key-${homes}`)
  writeFileSync(keyFile, `${api_key}\n`)
  const inlet = (args: readonly string[], environment: Record<string, string> = {}) =>
    runCli(args, { environment: { HOME: home, ...environment } })
  return { home, api_key, keyFile, inlet, login: () => inlet(['login', at.url, '--key-file', keyFile]) }
}

async function newSignedIn(at = control()) {
  const user = await newUser(undefined, at)
  expect((await user.login()).code).toBe(0)
  const json = async (...args: readonly string[]) => {
    const { code, out, err } = await user.inlet([...args, '--json'])
    expect([code, err]).toEqual([0, ''])
    return JSON.parse(out)
  }
  return { ...user, json }
}

describe('login', () => {
  test('stores a key that only the user can read, for later commands', async () => {
    const user = await newUser()
    const { code, out } = await user.login()
    expect([code, out]).toEqual([0, expect.stringContaining('The key may: admin, query, metrics, ingest.')])
    expect(out).not.toContain(user.api_key)
    const stored = join(user.home, '.config/inlet/profiles.json')
    expect(statSync(stored).mode & 0o077).toBe(0)
    expect((await user.inlet(['endpoints', 'list'])).out).toBe('There are no endpoints.\n')
    const { out: profiles } = await user.inlet(['profiles'])
    expect(profiles).toContain(control().url)
    expect(profiles).not.toContain(user.api_key)
  })

  test('says what a limited key may do', async () => {
    const user = await newUser(['metrics', 'ingest'])
    expect((await user.login()).out).toContain('The key may: metrics, ingest.')
  })

  test('refuses a key that is not known, and stores nothing', async () => {
    const user = await newUser()
    writeFileSync(user.keyFile, 'ing_live_nothing')
    expect(await user.login()).toEqual({ code: 1, out: '', err: 'the API key is unknown or revoked\n' })
    writeFileSync(user.keyFile, '\n')
    expect((await user.login()).err).toBe('no API key was given\n')
    expect(() => readdirSync(user.home)).toThrow('ENOENT')
  })

  test('an endpoint is created in the only region, and one in a region without nodes comes with a warning', async () => {
    await using own = await newControl()
    const user = await newSignedIn(own)
    const create = (...fields: readonly string[]) =>
      user.inlet(['endpoints', 'create', ...fields.flatMap((field) => ['--set', field])])
    expect((await create('name=early')).err).toMatch(/^region: no node has joined yet/)
    await TestNode.register(own, 'loc')
    const { code, out, err } = await create('name=shop')
    expect([code, err]).toEqual([0, ''])
    expect(out).toContain('region: loc')
    const mistaken = await create('name=lost', 'region=fra')
    expect(mistaken.err).toBe(
      'Warning: no node serves region fra; regions with nodes: loc. Until one does, the endpoint accepts nothing.\n',
    )
    const doctor = await user.inlet(['doctor', '--json'])
    expect(JSON.parse(doctor.out)).toContainEqual(
      expect.objectContaining({
        check: 'endpoint',
        status: 'fail',
        message: expect.stringContaining('no node serves region fra'),
      }),
    )
    await TestNode.register(own, 'nyc')
    expect((await create('name=other')).err).toMatch(/^region: name one of those that have nodes .*: loc, nyc$/m)
  })

  test('keeps a profile for each name', async () => {
    const [user, other] = [await newSignedIn(), await newUser()]
    await user.json('endpoints', 'create', '--set', `region=${newRegion()}`, '--set', 'name=mine')
    expect((await user.inlet(['--profile', 'other', 'login', control().url, '--key-file', other.keyFile])).code).toBe(0)
    expect((await user.inlet(['endpoints', 'list'])).out).toBe('There are no endpoints.\n')
    expect((await user.inlet(['--profile=default', 'endpoints', 'list'])).out).toContain('mine')
    expect((await user.inlet(['endpoints', 'list'], { INLET_PROFILE: 'default' })).out).toContain('mine')
    expect((await user.inlet(['--profile', 'othr', 'endpoints', 'list'])).err).toBe(
      'there is no profile othr; did you mean other?\n',
    )
    await user.inlet(['logout'])
    expect((await user.inlet(['endpoints', 'list'])).out).toContain('mine')
    await user.inlet(['logout'])
    expect((await user.inlet(['endpoints', 'list'])).err).toMatch(/^not signed in: run inlet login/)
  })

  test('never sends a key to another address than its own', async () => {
    const user = await newSignedIn()
    const { code, err } = await user.inlet(['endpoints', 'list'], { INLET_URL: 'http://127.0.0.1:9' })
    expect([code, err]).toEqual([1, expect.stringContaining('set INLET_API_KEY too, or unset INLET_URL')])
  })

  test('the environment goes before profiles', async () => {
    const [user, other] = [await newSignedIn(), await newUser()]
    await user.json('endpoints', 'create', '--set', `region=${newRegion()}`, '--set', 'name=mine')
    const environment = { INLET_URL: control().url, INLET_API_KEY: other.api_key }
    expect((await user.inlet(['endpoints', 'list'], environment)).out).toBe('There are no endpoints.\n')
  })

  test('a damaged file is an error that says what to do', async () => {
    const user = await newSignedIn()
    const stored = join(user.home, '.config/inlet/profiles.json')
    writeFileSync(stored, readFileSync(stored, 'utf8').slice(0, -10))
    expect((await user.inlet(['endpoints', 'list'])).err).toBe(`${stored} is damaged: remove it, and run inlet login\n`)
  })
})

describe('things of an account', () => {
  test('are created, listed, changed and deleted by name', async () => {
    const user = await newSignedIn()
    const region = newRegion()
    const created = await user.json('endpoints', 'create', '--set', `region=${region}`, '--set', 'name=Line 1')
    expect(created).toMatchObject({ name: 'Line 1', region })
    expect(await user.json('endpoints', 'show', 'Line 1')).toMatchObject({ id: created.id })
    expect((await user.inlet(['endpoints', 'show', created.id])).out).toContain('name: Line 1\n')
    const changed = await user.json('endpoints', 'change', 'Line 1', '--set', 'segment_max_age_seconds=7')
    expect(changed).toMatchObject({ segment_max_age_seconds: 7 })
    expect((await user.inlet(['endpoints', 'list'])).out).toMatch(/^NAME +STATUS +DESTINATION +LAG +ID\nLine 1 +\S+ +- +\S+ +/)
    expect(await user.inlet(['endpoints', 'show', 'Line1'])).toMatchObject({
      code: 1,
      err: 'there is no endpoint Line1; did you mean Line 1?\n',
    })
    expect((await user.inlet(['endpoints', 'delete', 'Line 1', '--yes', '--force'])).code).toBe(0)
    expect(await user.json('endpoints', 'list')).toEqual([])
  })

  test('a view comes from a file, is published and attached', async () => {
    const user = await newSignedIn()
    await user.json('endpoints', 'create', '--set', `region=${newRegion()}`, '--set', 'name=shop')
    const file = join(directory, 'view.yaml')
    writeFileSync(file, 'name: orders\ndefinition:\n  columns:\n    - { name: id, type: BIGINT, path: $.id }\n')
    expect(await user.json('views', 'create', '-f', file)).toMatchObject({ name: 'orders', status: 'draft' })
    expect(await user.json('views', 'publish', 'orders')).toMatchObject({ status: 'published' })
    expect(await user.json('views', 'version', 'orders', '--set', 'copy_from_version=1')).toMatchObject({
      version: 2,
      status: 'draft',
    })
    expect(await user.json('views', 'show', 'orders')).toMatchObject({ version: 2 })
    const binding = await user.json('bindings', 'attach', 'shop', '--set', 'view=orders', '--set', 'is_required=true')
    expect(await user.json('bindings', 'list', 'shop')).toMatchObject([
      { id: binding.id, view_name: 'orders', view_version: 1, is_required: true },
    ])
    expect((await user.inlet(['bindings', 'list', 'shop'])).out).toMatch(/active +true +\S+ +- +- +- /)
    expect((await user.inlet(['bindings', 'detach', 'shop', binding.id, '--yes'])).code).toBe(0)
    const start = '2026-12-24T00:00:00Z'
    await user.json('bindings', 'attach', 'shop', '--set', 'view=orders', '--set', `canary_start_ts=${start}`)
    expect((await user.inlet(['bindings', 'list', 'shop'])).out).toMatch(/active +false +\S+ +2026-12-24T\S+ +yes +- /)
    expect(await user.json('dlq', 'reasons', 'orders')).toEqual([])
    expect(await user.json('jobs', 'list')).toEqual([])
    expect(await user.json('commits', 'list', 'shop')).toEqual([])
  })

  test('a list has as many as asked for, and says that there are more', async () => {
    const user = await newSignedIn()
    const region = newRegion()
    for (const name of ['a', 'b', 'c'])
      await user.json('endpoints', 'create', '--set', `region=${region}`, '--set', `name=${name}`)
    const { out, err } = await user.inlet(['endpoints', 'list', '--limit', '2'])
    expect([out.split('\n').length, err]).toEqual([4, 'There are more: --all shows all of them, --limit N shows N.\n'])
    expect(await user.json('endpoints', 'list', '--all')).toHaveLength(3)
    expect(await user.json('endpoints', 'list', '--limit', '3')).toHaveLength(3)
  })

  test('what the API refuses is an error with the field', async () => {
    const user = await newSignedIn()
    const refused = await user.inlet(['endpoints', 'create', '--set', 'name=x', '--set', 'region=nowhere at all'])
    expect([refused.code, refused.err]).toEqual([1, expect.stringContaining('region')])
    expect(await user.inlet(['endpoints', 'create', '--set', 'name'])).toMatchObject({
      code: 2,
      err: expect.stringContaining('--set: must be FIELD=VALUE, not "name"'),
    })
    const set = async (...fields: readonly string[]) => {
      const { code, err } = await user.inlet(['endpoints', 'create', ...fields.flatMap((field) => ['--set', field])])
      return [code, err]
    }
    expect(await set('name=x', 'name=y')).toEqual([2, expect.stringContaining('--set: name must be given once')])
    expect(await set('mqtt_config.enabled=true', 'mqtt_config={}')).toEqual([
      2,
      expect.stringContaining('mqtt_config.enabled must be given once'),
    ])
    expect(await set('name=x', 'mqtt_config={"enabled":true,"enabled":false}')).toEqual([
      1,
      expect.stringContaining('--set mqtt_config: Map keys must be unique'),
    ])
    expect(await user.json('endpoints', 'list')).toEqual([])
    const file = join(directory, 'broken.yaml')
    writeFileSync(file, 'name: [')
    expect((await user.inlet(['views', 'create', '-f', file])).err).toMatch(/broken\.yaml: .* line 1/)
  })

  test('nothing is deleted without an answer', async () => {
    const user = await newSignedIn()
    await user.json('endpoints', 'create', '--set', `region=${newRegion()}`, '--set', 'name=kept')
    const { code, err } = await user.inlet(['endpoints', 'delete', 'kept'])
    expect([code, err]).toEqual([2, expect.stringContaining('Add --yes to do it')])
    expect(await user.json('endpoints', 'list')).toHaveLength(1)
    const archived = await user.inlet(['views', 'archive', '0199a000-0000-7000-8000-000000000000'])
    expect(archived).toMatchObject({ code: 2, err: expect.stringContaining('cannot be attached again. Add --yes to do it') })
  })
})

describe('secrets', () => {
  const value = 'a value that nobody may see'

  test('come from a file or a pipe, and are never shown; one that Inlet makes is, once', async () => {
    const user = await newSignedIn()
    const file = join(directory, `secret-${homes}`)
    writeFileSync(file, `${value}\n`)
    const created = await user.inlet(['secrets', 'create', 'email_key', '-f', file])
    expect([created.code, created.err]).toEqual([0, ''])
    expect(created.out).toBe("Created the secret email_key. Views hash with it as hmac_sha256('email_key', …).\n")
    const made = await user.inlet(['secrets', 'create', 'made'])
    expect(made.out).toMatch(/^[\w+/]{43}=\n\nSave the value now/)
    writeFileSync(file, Buffer.from(value).toString('base64'))
    const asked = await user.inlet(['secrets', 'rotate', 'email_key', '-f', file, '--base64'])
    expect(asked).toMatchObject({ code: 2, err: expect.stringContaining('the old value will be lost') })
    const rotated = await user.json('secrets', 'rotate', 'email_key', '-f', file, '--base64', '--yes')
    expect(rotated).toMatchObject({ name: 'email_key', rotated_at: expect.stringMatching(/Z$/) })
    expect(rotated).not.toHaveProperty('value')
    expect(await user.json('secrets', 'list')).toMatchObject([{ name: 'email_key', used_by: [] }, { name: 'made' }])
    const { out } = await user.inlet(['secrets', 'list'])
    expect(out).not.toContain(value)
    expect((await user.inlet(['secrets', 'rotate', 'emial_key'])).err).toContain('did you mean email_key?')
    expect((await user.inlet(['secrets', 'delete', 'made', '--yes'])).out).toBe('Deleted.\n')
  })

  test('a value is no argument, and what is wrong with one is said without it', async () => {
    const user = await newSignedIn()
    expect((await user.inlet(['secrets', 'create', 'k', value])).code).toBe(2)
    const file = join(directory, `short-${homes}`)
    writeFileSync(file, 'too short')
    const short = await user.inlet(['secrets', 'create', 'k', '-f', file])
    expect([short.code, short.err]).toEqual([1, expect.stringContaining('must have 16 to 1024 bytes')])
    expect(short.err).not.toContain('too short')
    expect((await user.inlet(['secrets', 'create', 'k', '--base64'])).code).toBe(2)
    writeFileSync(file, Buffer.alloc(32, 0xff))
    expect((await user.inlet(['secrets', 'create', 'k', '-f', file])).err).toContain('add --base64')
  })
})

test('what was lost with a node is listed and confirmed, and its receipt says so', async () => {
  const user = await newSignedIn()
  const region = newRegion()
  const { id } = await user.json('endpoints', 'create', '--set', 'name=till', '--set', `region=${region}`)
  const node = await TestNode.register(control(), region)
  await node.heartbeat({}, { lag: [aLag(id, { records: 12, first_seq: 3, last_seq: 3 })] })
  expect((await user.inlet(['losses', 'list'])).out).toBe('There are no losses.\n')
  const operator = clientOf(control().call, operatorToken)
  await operator.patch(`/v1/nodes/${node.id}`, { name: 'fra-1' })
  expect((await control().call('GET', '/metrics')).body).toMatch(`node_id="${node.id}",node_name="fra-1"`)
  await operator.delete(`/v1/nodes/${node.id}?force=true`)
  await readMarkers(control().store)
  const { out } = await user.inlet(['losses', 'list', '--endpoint', 'till'])
  expect(out).toMatch(new RegExp(` open +node_removed +till +fra-1 \\(${node.id}\\) +3 +1 +12 `))
  expect((await user.inlet(['receipts', 'show', 'till', `${node.id}-3`])).out).toContain('state: lost')
  const [loss] = await user.json('losses', 'list', '--state', 'open')
  expect((await user.inlet(['losses', 'confirm', loss.id])).err).toContain(
    `up to 12 acknowledged records of till on node fra-1 (${node.id}), as of ${loss.reported_at}, and what was acknowledged later: the loss will be confirmed`,
  )
  expect((await user.inlet(['losses', 'confirm', node.id])).err).toContain(`there is no loss ${node.id}`)
  expect((await user.inlet(['losses', 'confirm', loss.id, '--yes'])).out).toContain('state: confirmed')
  expect(await user.json('losses', 'list', '--state', 'open')).toEqual([])
})
