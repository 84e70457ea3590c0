/** The steps of "Hardening" in docs/security.md that are settings, on one machine with `inlet start`. */
import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { promisify } from 'node:util'
import { describe, expect, test } from 'vitest'
import { hardenedSettings, secured, startReady } from '../support/hardened.ts'
import { Installation } from '../support/installation.ts'

const program = resolve(import.meta.dirname, '../../src/main.ts')

type Finding = { readonly check: string; readonly status: string; readonly message: string }
type Run = { readonly stdout: string; readonly stderr: string }

/** Starts Inlet with these settings, and returns what the start said and what its user can do. */
async function startHardened(settings: (installation: Installation) => Promise<Record<string, string>>) {
  const installation = await Installation.create({ environment: { INLET_BOOTSTRAP_API_KEY: '' } })
  const { directory } = installation
  const environment = await settings(installation)
  installation.configure(environment)
  const running = await startReady(installation)
  const inlet = async (args: readonly string[], own: Record<string, string> = {}, input = ''): Promise<Run> => {
    const env = {
      ...{ PATH: process.env['PATH'], HOME: directory, NODE_COMPILE_CACHE: process.env['NODE_COMPILE_CACHE'] },
      ...{ INLET_DATA_DIR: directory, INLET_DISK_RESERVE_BYTES: '0B' },
      INLET_CONTROL_LISTEN: new URL(installation.apiUrl).host,
      INLET_INGEST_LISTEN: new URL(installation.ingestUrl).host,
      ...{ ...environment, ...own },
    }
    const run = promisify(execFile)(process.execPath, [program, ...args], { env })
    run.child.stdin?.end(input)
    return run.catch((error: Run) => error)
  }
  const doctor = async (): Promise<readonly Finding[]> => JSON.parse((await inlet(['doctor', '--json'])).stdout)
  const secret = (name: string) => readFileSync(join(directory, name), 'utf8').trim()
  return { installation, running, inlet, doctor, secret, [Symbol.asyncDispose]: () => installation[Symbol.asyncDispose]() }
}

describe('a start is ready, and says where', () => {
  test('with certificates from files for every listener', { timeout: 120_000 }, async () => {
    await using hardened = await startHardened(hardenedSettings)
    const { installation, running, inlet, doctor, secret } = hardened
    const url = secured(installation.apiUrl)
    expect(running).toMatchObject({ management_api: `${url}/`, ingest: expect.stringMatching(/^https:/) })
    expect(secret('sign-in-link').startsWith(`${url}/sign-in#link=`)).toBe(true)
    const findings = await doctor()
    const where = (check: string) => findings.filter((finding) => finding.check === check)
    for (const setting of ['INLET_CONTROL_LISTEN', 'INLET_INGEST_LISTEN'])
      expect(where('port')).toContainEqual(
        expect.objectContaining({ status: 'ok', message: expect.stringMatching(`${setting}\\) is ready`) }),
      )
    expect(findings.filter(({ status }) => status === 'fail')).toEqual([])

    const key = secret('first-api-key')
    const login = (address: string, own = {}) => inlet(['login', address], own, key)
    expect((await login(url)).stderr).toContain('NODE_EXTRA_CA_CERTS')
    expect((await login(url.replace('https', 'http'))).stderr).toContain('use https://')
    const trusting = { NODE_EXTRA_CA_CERTS: join(installation.directory, 'inlet.crt') }
    expect((await login(url, trusting)).stdout).toContain(`Signed in to ${url}`)
    expect((await inlet(['endpoints', 'list'], trusting)).stdout).toContain('default')
    const sent = await inlet(['send', 'default', '--timeout', '5'], trusting, '{"a":1}')
    expect(sent).toMatchObject({ stdout: expect.stringContaining('1 record stored') })
    const untrusting = (await inlet(['doctor', '--json'])).stdout
    expect(JSON.parse(untrusting).filter((finding: Finding) => finding.check === 'connection')).toMatchObject([
      { status: 'fail', message: expect.stringContaining('NODE_EXTRA_CA_CERTS') },
    ])
    expect(await installation.end('start', 'SIGTERM')).toBe(0)
  })
})
