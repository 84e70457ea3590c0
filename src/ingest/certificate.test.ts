import { copyFile, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { createLogger } from '#lib/telemetry.ts'
import { Certificate, type TlsOptions } from './certificate.ts'

const fixture = (name: string) => join(import.meta.dirname, '../../test/fixtures/tls', name)
const logger = createLogger('test', 'silent')
let directory = ''
const place = async (name: string, suffix: 'crt' | 'key') => copyFile(fixture(`${name}.${suffix}`), join(directory, suffix))
const files = () => ({ certificateFile: join(directory, 'crt'), keyFile: join(directory, 'key'), logger })

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'inlet-tls-'))
  await place('first', 'crt')
  await place('first', 'key')
})
afterEach(() => rm(directory, { recursive: true }))

describe('at the start', () => {
  test.each([
    ['certificateFile', 'INLET_TLS_CERTIFICATE_FILE'],
    ['keyFile', 'INLET_TLS_KEY_FILE'],
  ] as const)('%s that is not there is named', async (which, name) => {
    await expect(Certificate.read({ ...files(), [which]: '/nowhere' })).rejects.toThrow(`${name}: /nowhere can't be read`)
  })
  test('a key that doesn’t fit is an error', async () => {
    await place('renewed', 'key')
    await expect(Certificate.read(files())).rejects.toThrow('no certificate and its key')
  })
  test('so is what is no PEM, and its text is not shown', async () => {
    await writeFile(join(directory, 'key'), 'secret words')
    const failure = await Certificate.read(files()).catch((error: Error) => error.message)
    expect(failure).toContain('no certificate and its key')
    expect(failure).not.toContain('secret')
  })
})

describe('renewed in place', () => {
  test('both files: whoever listens is told, once', async () => {
    const certificate = await Certificate.read(files())
    const told: TlsOptions[] = []
    certificate.subscribe((options) => told.push(options))
    await certificate.look()
    expect(told).toHaveLength(0)
    await place('renewed', 'crt')
    await place('renewed', 'key')
    await certificate.look()
    await certificate.look()
    expect(told).toHaveLength(1)
    expect(told[0]).toBe(certificate.options)
  })
  test('only one of them yet: the one before goes on', async () => {
    const certificate = await Certificate.read(files())
    const before = certificate.options
    await place('renewed', 'crt')
    await expect(certificate.look()).rejects.toThrow('no certificate and its key')
    expect(certificate.options).toBe(before)
    await place('renewed', 'key')
    await certificate.look()
    expect(certificate.options.cert).not.toEqual(before.cert)
  })
})
