/** The docs about set-ups work: the JSON Schema, the examples, the workflow, and every command of the page. */
import { spawn } from 'node:child_process'
import { chmodSync, cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, join, resolve } from 'node:path'
import { text } from 'node:stream/consumers'
import { Ajv } from 'ajv'
import { afterAll, describe, expect, test } from 'vitest'
import { parse } from 'yaml'
import { setupJsonSchema } from '#model/setup.ts'
import { useControl } from '../support/control.ts'

const root = resolve(import.meta.dirname, '../..')
const directory = mkdtempSync(join(tmpdir(), 'inlet-setup-docs-'))
const control = useControl()
afterAll(() => rmSync(directory, { recursive: true }))

/** Each program has the name and the text of a shell script. */
function programs(place: string, scripts: Readonly<Record<string, string>> = {}): string {
  const bin = join(place, 'bin')
  mkdirSync(bin)
  const inlet = `exec '${process.execPath}' '${join(root, 'src/main.ts')}' "$@"`
  for (const [name, script] of Object.entries({ inlet, ...scripts })) {
    writeFileSync(join(bin, name), `#!/bin/sh\n${script}\n`)
    chmodSync(join(bin, name), 0o755)
  }
  return `${bin}${delimiter}${process.env['PATH']}`
}

let places = 0

async function newPlace(scripts?: Readonly<Record<string, string>>) {
  const account = await control().newAccount()
  const place = join(directory, String(places++))
  mkdirSync(place)
  const base = { PATH: programs(place, scripts), HOME: place, NODE_COMPILE_CACHE: process.env['NODE_COMPILE_CACHE'] }
  const run = async (script: string, environment: Record<string, string> = {}) => {
    const { promise, resolve: done } = Promise.withResolvers<{ code: number | null; out: string; err: string }>()
    const child = spawn('bash', ['--norc', '-euo', 'pipefail', '-c', script], { cwd: place, env: { ...base, ...environment } })
    const output = Promise.all([text(child.stdout), text(child.stderr)])
    child.on('close', async (code) => {
      const [out, err] = await output
      done({ code, out, err })
    })
    return promise
  }
  return { account, place, run }
}

const examples = readdirSync(join(root, 'examples/setup')).map((name) => readFileSync(join(root, 'examples/setup', name), 'utf8'))

describe('the JSON Schema', () => {
  const validate = new Ajv({
    strict: true,
    allErrors: true,
    allowUnionTypes: true,
    formats: { uuid: true, 'date-time': true },
  }).compile(setupJsonSchema())
  const page = readFileSync(join(root, 'docs/setup-in-git.md'), 'utf8')
  const inPage = [...page.matchAll(/<<'YAML'\n(.*?)^YAML$/gms)].map(([, yaml = '']) => yaml)

  test.each([...examples, ...inPage])('accepts what the documentation shows: %#', (yaml) => {
    validate(parse(yaml))
    expect(validate.errors).toBeNull()
  })

  test.each([
    ['an unknown kind', 'endpoint: []'],
    ['an unknown field', 'endpoints: [{ name: a, region: fra, speed: 1 }]'],
    ['a missing field', 'endpoints: [{ name: a }]'],
    ['a number out of bounds', 'endpoints: [{ name: a, region: fra, segment_bytes: 1 }]'],
    ['a region that is none', 'endpoints: [{ name: a, region: frankfurt }]'],
    ['a text in place of a list', 'views: orders'],
    ['a column without a type', 'views: [{ name: a, definition: { columns: [{ name: a, path: $.a }] } }]'],
    ['a variable in a view', `views: [{ name: "\${NAME}", definition: { columns: [{ name: a, type: X, path: $.a }] } }]`],
    ['a variable in lower case', `endpoints: [{ name: a, region: "\${region}" }]`],
    ['a scope that is none', 'keys: [{ name: a, scopes: [write] }]'],
    ['an id in place of a name', 'bindings: [{ endpoint_id: a, view: orders }]'],
  ])('rejects %s', (_, yaml) => {
    expect(validate(parse(yaml))).toBe(false)
  })

  test('accepts variables in place of other texts', () => {
    expect(validate(parse(`endpoints: [{ name: "a-\${ENV}", region: "\${REGION}" }]`))).toBe(true)
  })

  test('is printed by inlet schema, and in the package', async () => {
    const { run } = await newPlace()
    const { out } = await run('inlet schema')
    expect(JSON.parse(out)).toEqual(setupJsonSchema())
    expect(JSON.parse(readFileSync(join(root, 'openapi/setup.schema.json'), 'utf8'))).toEqual(setupJsonSchema())
  })

  test('accepts what inlet export writes', { timeout: 60_000 }, async () => {
    const { account, place, run } = await newPlace()
    cpSync(join(root, 'examples/setup'), join(place, 'setup'), { recursive: true })
    const environment = { ...variables, INLET_URL: control().url, INLET_API_KEY: account.api_key }
    const { code, out, err } = await run(
      'inlet apply -f setup --yes --keys-to keys.json >&2; inlet export; inlet export -f exported >&2; inlet plan -f exported --prune --exit-code >&2',
      environment,
    )
    expect([code, err]).toEqual([0, expect.stringContaining('No changes')])
    for (const yaml of [out, ...filesIn(join(place, 'exported'))]) {
      validate(parse(yaml))
      expect(validate.errors).toBeNull()
      const [, schema = ''] = /^# yaml-language-server: \$schema=(\S+)\n/.exec(yaml) ?? []
      expect(schema).toMatch(/^\.{1,2}\/setup\.schema\.json$/)
    }
  })
})

const variables = { INLET_VAR_BUCKET: 'example-lake', INLET_VAR_ROLE: 'arn:aws:iam::123456789012:role/ingest' }

function filesIn(place: string): readonly string[] {
  const names = readdirSync(place, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.yaml'))
  return names.map((name) => readFileSync(join(place, name), 'utf8'))
}

describe('the page', () => {
  test('has only commands that work', { timeout: 120_000 }, async () => {
    const page = readFileSync(join(root, 'docs/setup-in-git.md'), 'utf8')
    const fenced = [...page.matchAll(/^```(\w*)\n(.*?)^```$/gms)].map(([, language, code = '']) => ({ language, code }))
    const blocks = fenced.filter(({ language }) => language === 'sh').map(({ code }) => code)
    const outputs = fenced.filter(({ language }) => language === '').map(({ code }) => code)
    expect(blocks.length).toBeGreaterThan(5)
    const { account, place, run } = await newPlace()
    writeFileSync(join(place, 'first-api-key'), account.api_key)
    const { code, out, err } = await run(blocks.join('\n'), { INLET_ADDRESS: control().url })
    expect({ code, err, out }).toMatchObject({ code: 0 })
    expect(outputs).toHaveLength(2)
    for (const shown of outputs) expect(out).toContain(shown)
    expect(out).toMatch(/^checkout$/m)
    expect(out).toContain('Done: 0 created, 0 changed, 3 deleted.')
  })
})

type Step = { readonly name?: string; readonly run?: string; readonly uses?: string; readonly env?: Record<string, string> }
type Job = { readonly env: Record<string, string>; readonly steps: readonly Step[] }

describe('the workflow', () => {
  const workflow = parse(readFileSync(join(root, 'examples/github-actions/inlet.yaml'), 'utf8'))

  test('plans pull requests, and applies main', { timeout: 120_000 }, async () => {
    const { account, place, run } = await newPlace({
      gh: 'echo "gh $*"; cat plan.md',
      npm: 'test "$*" = "install --global inlet.tgz"',
    })
    const { body: reader } = await account.post('/v1/keys', { name: 'reader', scopes: ['metrics'] })
    cpSync(join(root, 'examples/setup'), join(place, 'setup'), { recursive: true })
    const values: Record<string, string> = {
      'vars.INLET_URL': control().url,
      'vars.INLET_PACKAGE': 'inlet.tgz',
      'vars.INLET_VAR_BUCKET': variables.INLET_VAR_BUCKET,
      'vars.INLET_VAR_ROLE': variables.INLET_VAR_ROLE,
      'secrets.INLET_READ_KEY': reader.api_key,
      'secrets.INLET_API_KEY': account.api_key,
      'github.token': 'a-token',
      'github.event.number': '7',
    }
    const fill = (text: string) =>
      text.replaceAll(/\$\{\{ (\S+) \}\}/g, (_, name: string) => values[name] ?? `no value for ${name}`)
    const fillAll = (environment: Record<string, string> = {}) =>
      Object.fromEntries(Object.entries(environment).map(([name, value]) => [name, fill(value)]))
    const runJob = async ({ env, steps }: Job) => {
      const outputs: string[] = []
      for (const step of steps) {
        if (step.run === undefined) continue
        const runner = { RUNNER_TEMP: place, GITHUB_STEP_SUMMARY: join(place, 'summary.md') }
        const { code, out, err } = await run(fill(step.run), {
          ...runner,
          ...fillAll(workflow.env),
          ...fillAll(env),
          ...fillAll(step.env),
        })
        expect({ step: step.name, code, err }).toEqual({ step: step.name, code: 0, err: '' })
        outputs.push(out)
      }
      return outputs.join('')
    }
    expect(Object.keys(workflow.jobs)).toEqual(['plan', 'apply'])
    const planned = await runJob(workflow.jobs.plan)
    expect(planned).toContain('gh pr comment 7 --body-file plan.md')
    expect(planned).toContain('4 to create, 0 to change, 0 to delete.')
    expect(readFileSync(join(place, 'summary.md'), 'utf8')).toMatch(/^### inlet plan\n```text\n {2}\+ destination lake\n/)
    expect((await account.get('/v1/endpoints')).body.items).toEqual([])
    const applied = await runJob(workflow.jobs.apply)
    expect(applied).toContain('Done: 6 created, 0 changed, 0 deleted.')
    expect(applied).toContain('checkout\nwarehouse loader\n')
    expect(applied).not.toContain('ing_live_')
  })
})
