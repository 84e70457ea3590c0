/** `inlet init`: the files that it writes pass their test, and work against a real control process. */
import { execFile } from 'node:child_process'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { Ajv } from 'ajv'
import { afterAll, describe, expect, test } from 'vitest'
import { parse } from 'yaml'
import { useControl } from '../support/control.ts'

const program = resolve(import.meta.dirname, '../../src/main.ts')
const directory = mkdtempSync(join(tmpdir(), 'inlet-init-'))
const control = useControl()
afterAll(() => rmSync(directory, { recursive: true }))

let places = 0

/** A working directory of its own, with these files. */
function newPlace(files: Readonly<Record<string, string>> = {}) {
  const cwd = join(directory, String(places++))
  mkdirSync(cwd)
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(dirname(join(cwd, name)), { recursive: true })
    writeFileSync(join(cwd, name), text)
  }
  const run = (file: string, args: readonly string[], environment: Readonly<Record<string, string>> = {}) =>
    new Promise<{ code: number | string; out: string; err: string }>((done) => {
      const env = { PATH: process.env['PATH'], HOME: cwd, NODE_COMPILE_CACHE: process.env['NODE_COMPILE_CACHE'], ...environment }
      execFile(file, args, { cwd, env, timeout: 60_000 }, (error, out, err) =>
        done({ code: error === null ? 0 : (error.code ?? String(error.signal)), out, err }),
      )
    })
  const inlet = (...args: readonly string[]) => run(process.execPath, [program, ...args])
  const written = () =>
    readdirSync(cwd, { recursive: true, encoding: 'utf8' })
      .filter((name) => /\.\w+$/.test(name.split('/').at(-1) ?? ''))
      .filter((name) => name !== '.github')
      .toSorted()
  return { cwd, run, inlet, written }
}

const all = [
  '.github/workflows/inlet.yaml',
  'setup/endpoints.yaml',
  'setup/setup.schema.json',
  'setup/tests.schema.json',
  'setup/views/orders.test.yaml',
  'setup/views/orders.yaml',
]

test('the test passes at once, and plan, apply and plan work', { timeout: 60_000 }, async () => {
  const { cwd, inlet, run, written } = newPlace()
  const { code, out, err } = await inlet('init')
  expect([code, err]).toEqual([0, ''])
  expect(out).toBe(`Wrote setup/endpoints.yaml
Wrote setup/views/orders.yaml
Wrote setup/views/orders.test.yaml
Wrote setup/setup.schema.json
Wrote setup/tests.schema.json
Wrote .github/workflows/inlet.yaml

Try it:
  inlet test
  inlet plan -f setup   # after inlet login
`)
  expect(written()).toEqual(all)
  for (const [name, schema] of [
    ['orders', 'setup'],
    ['orders.test', 'tests'],
  ]) {
    const text = readFileSync(join(cwd, `setup/views/${name}.yaml`), 'utf8')
    expect(text.split('\n', 1)).toEqual([`# yaml-language-server: $schema=../${schema}.schema.json`])
    const validate = new Ajv({ allowUnionTypes: true, formats: { uuid: true, 'date-time': true } }).compile(
      JSON.parse(readFileSync(join(cwd, `setup/${schema}.schema.json`), 'utf8')),
    )
    expect([validate(parse(text)), validate.errors]).toEqual([true, null])
  }
  expect(await inlet('test')).toEqual({ code: 0, out: '3 cases passed.\n', err: '' })
  const account = await control().newAccount()
  const environment = { INLET_URL: control().url, INLET_API_KEY: account.api_key }
  const remote = (...args: readonly string[]) => run(process.execPath, [program, ...args], environment)
  const planned = await remote('plan', '-f', 'setup')
  expect([planned.code, planned.err]).toEqual([0, ''])
  expect(planned.out).toContain('3 to create, 0 to change, 0 to delete.')
  expect(await remote('apply', '-f', 'setup', '--yes')).toMatchObject({ code: 0, err: '' })
  expect((await remote('plan', '-f', 'setup', '--exit-code')).code).toBe(0)
})

test('the workflow runs the test, and the plan', async () => {
  const { cwd, inlet, run } = newPlace({
    npm: '#!/bin/sh\ntest "$*" = "install --global inlet.tgz"\n',
    'bin/inlet': `#!/bin/sh\nexec '${process.execPath}' '${program}' "$@"\n`,
  })
  await inlet('init', 'deploy/inlet')
  expect((await run('chmod', ['+x', 'npm', 'bin/inlet'])).code).toBe(0)
  const { jobs } = parse(readFileSync(join(cwd, '.github/workflows/inlet.yaml'), 'utf8'))
  const account = await control().newAccount(['metrics'])
  const values: Record<string, string> = {
    'vars.INLET_PACKAGE': 'inlet.tgz',
    'vars.INLET_URL': control().url,
    'secrets.INLET_READ_KEY': account.api_key,
  }
  const outputs: string[] = []
  for (const { run: script, env = {} } of [...jobs.test.steps, ...jobs.plan.steps]) {
    if (script === undefined) continue
    const filled = Object.entries<string>(env).map(([name, text]) => [
      name,
      text.replaceAll(/\$\{\{ (\S+) \}\}/g, (_, key: string) => values[key] ?? '?'),
    ])
    const environment = {
      PATH: `${cwd}:${cwd}/bin:${process.env['PATH']}`,
      GITHUB_STEP_SUMMARY: 'summary',
      ...Object.fromEntries(filled),
    }
    const { code, out, err } = await run('bash', ['-eo', 'pipefail', '-c', script], environment)
    expect({ script, code, err }).toEqual({ script, code: 0, err: '' })
    outputs.push(out)
  }
  expect(outputs.join('')).toContain('3 cases passed.')
  expect(outputs.join('')).toContain('3 to create')
  expect(readFileSync(join(cwd, 'summary'), 'utf8')).toContain('3 to create')
})

describe('no file is replaced', () => {
  test('a second run writes nothing', async () => {
    const { cwd, inlet, written } = newPlace()
    await inlet('init')
    writeFileSync(join(cwd, 'setup/views/orders.yaml'), 'mine')
    const { code, out, err } = await inlet('init')
    expect([code, out]).toEqual([1, ''])
    expect(err).toMatch(/^setup has a set-up already, with \S+: nothing was written\. Name another directory\n$/)
    expect(written()).toEqual(all)
    expect(readFileSync(join(cwd, 'setup/views/orders.yaml'), 'utf8')).toBe('mine')
  })

  test('a workflow and a schema that are there stay', async () => {
    const { cwd, inlet } = newPlace({ '.github/workflows/inlet.yaml': 'mine', 'setup/setup.schema.json': 'mine too' })
    const { code, out } = await inlet('init')
    expect(code).toBe(0)
    expect(out).toContain('Kept  setup/setup.schema.json\nWrote setup/tests.schema.json\nKept  .github/workflows/inlet.yaml\n')
    expect(readFileSync(join(cwd, '.github/workflows/inlet.yaml'), 'utf8')).toBe('mine')
    expect(readFileSync(join(cwd, 'setup/setup.schema.json'), 'utf8')).toBe('mine too')
  })

  test('a file in place of a directory is a clear error', async () => {
    const { inlet } = newPlace({ 'setup/views': 'a file' })
    expect(await inlet('init')).toMatchObject({
      code: 1,
      err: expect.stringMatching(/^cannot write setup\/views\/orders\.yaml: E\w+\n$/),
    })
  })
})

test('a directory elsewhere has its own workflow, and one with a strange name is refused', async () => {
  const { cwd, inlet, run } = newPlace()
  const elsewhere = join(directory, 'else where')
  expect((await inlet('init', elsewhere)).code).toBe(0)
  expect(readFileSync(join(elsewhere, '.github/workflows/inlet.yaml'), 'utf8')).toContain('run: inlet test .\n')
  expect((await run(process.execPath, [program, 'test', elsewhere])).code).toBe(0)
  expect((await inlet('init', '.')).code).toBe(0)
  expect((await inlet('test', '.')).out).toBe('3 cases passed.\n')
  expect(await inlet('init', 'a; rm -r b')).toMatchObject({ code: 2, err: expect.stringContaining('DIR must have only letters') })
  expect(readdirSync(cwd)).not.toContain('a; rm -r b')
  expect(await inlet('init', 'other', '--region', 'Frankfurt')).toMatchObject({ code: 2, err: expect.stringContaining('three') })
})
