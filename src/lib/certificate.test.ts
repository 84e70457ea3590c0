import { copyFile, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { Certificate } from './certificate.ts'
import { systemClock } from './clock.ts'
import type { TlsOptions } from './served-certificate.ts'
import { createLogger } from './telemetry.ts'

const fixture = (name: string) => join(import.meta.dirname, '../../test/fixtures/tls', name)
const logger = createLogger('test', 'silent')
let directory = ''
const place = async (name: string, suffix: 'crt' | 'key') => copyFile(fixture(`${name}.${suffix}`), join(directory, suffix))
const files = () => ({
  setting: 'INLET_TLS',
  certificateFile: join(directory, 'crt'),
  keyFile: join(directory, 'key'),
  logger,
  clock: systemClock,
})

async function open(): Promise<Certificate> {
  const certificate = await Certificate.open(files())
  if (certificate === undefined) throw new Error('the files are configured')
  return certificate
}

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'inlet-tls-'))
  await place('first', 'crt')
  await place('first', 'key')
})
afterEach(() => rm(directory, { recursive: true }))

describe('at startup', () => {
  test.each([
    ['certificateFile', 'INLET_TLS_CERTIFICATE_FILE'],
    ['keyFile', 'INLET_TLS_KEY_FILE'],
  ] as const)('a missing %s is named', async (which, name) => {
    await expect(Certificate.open({ ...files(), [which]: '/nowhere' })).rejects.toThrow(`${name}: cannot read /nowhere`)
  })
  test('a key that does not match is an error', async () => {
    await place('renewed', 'key')
    await expect(Certificate.open(files())).rejects.toThrow('must be a certificate and its key')
  })
  test('a file that is not PEM is an error without its content', async () => {
    await writeFile(join(directory, 'key'), 'secret words')
    const failure = await Certificate.open(files()).catch((error: Error) => error.message)
    expect(failure).toContain('must be a certificate and its key')
    expect(failure).not.toContain('secret')
  })
})

describe('renewal in place', () => {
  test('subscribers are notified once when both files changed', async () => {
    const certificate = await open()
    const received: TlsOptions[] = []
    certificate.subscribe((options) => received.push(options))
    await certificate.refresh()
    expect(received).toHaveLength(0)
    await place('renewed', 'crt')
    await place('renewed', 'key')
    await certificate.refresh()
    await certificate.refresh()
    expect(received).toHaveLength(1)
    expect(received[0]).toBe(certificate.options)
  })
  test('the previous certificate is served while only one file has changed', async () => {
    const certificate = await open()
    const before = certificate.options
    await place('renewed', 'crt')
    await expect(certificate.refresh()).rejects.toThrow('must be a certificate and its key')
    expect(certificate.options).toBe(before)
    await place('renewed', 'key')
    await certificate.refresh()
    expect(certificate.options.cert).not.toEqual(before.cert)
  })
})
