/**
 * A real ACME server for tests: Pebble, which validates DNS-01 challenges at a given name server, with its own files, ports and process.
 *
 * Each start has a new root certificate, and knows no accounts or orders of the one before.
 * Law: when `stop` resolves, the process has ended and all files are removed.
 */
import { mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { get } from 'node:https'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { writeCertificate } from '../../test/support/certificates.ts'
import { end, freePort, loopback, type Place, requireProgram, spawnAt, waitUntilUp } from './processes.ts'

const startTimeoutMs = 20_000
const dayMs = 86_400_000

export type PebbleDescription = {
  readonly directoryUrl: string
  /** PEM file with the certificate of the ACME server itself. */
  readonly caFile: string
  /** PEM of the root that issued certificates chain to. */
  readonly root: string
}

export type Pebble = {
  readonly described: PebbleDescription
  /** Stops it, but keeps it in memory, so that a later start would have its accounts and root. */
  pause(): void
  resume(): void
  stop(): Promise<void>
}

export type PebbleOptions = {
  /** Address and port of the name server that has the challenges. */
  readonly nameServer: string
  /** Life of certificates. */
  readonly validitySeconds?: number
  readonly place?: Place
}

export async function startPebble({ nameServer, validitySeconds, place = loopback }: PebbleOptions): Promise<Pebble> {
  requireProgram('pebble', 'pebble')
  const directory = mkdtempSync(join(tmpdir(), 'inlet-pebble-'))
  const [port, managementPort] = [await freePort(), await freePort()]
  const [caFile, keyFile] = [join(directory, 'certificate.pem'), join(directory, 'key.pem')]
  // As with every real server, the clock of a client may be an hour behind.
  const now = Date.now()
  const output = join(directory, 'pebble.out')
  try {
    await writeCertificate({ certificateFile: caFile, keyFile }, { name: place.address, fromMs: now - dayMs, toMs: now + dayMs })
    const settings = {
      listenAddress: `${place.address}:${port}`,
      managementListenAddress: `${place.address}:${managementPort}`,
      certificate: caFile,
      privateKey: keyFile,
      // Ports of HTTP-01 and TLS-ALPN-01, which wildcards cannot use.
      httpPort: 1,
      tlsPort: 1,
      ...(validitySeconds === undefined ? {} : { certificateValidityPeriod: validitySeconds }),
    }
    writeFileSync(join(directory, 'pebble.json'), JSON.stringify({ pebble: settings }))
    const log = openSync(output, 'a')
    const server = spawnAt(place, 'pebble', ['-config', 'pebble.json', '-strict', '-dnsserver', nameServer], {
      cwd: directory,
      stdio: ['ignore', log, log],
      // Challenges are validated at once, and for every order. As real servers do, it rejects some nonces.
      env: { ...process.env, PEBBLE_VA_NOSLEEP: '1', PEBBLE_AUTHZREUSE: '0', PEBBLE_WFE_NONCEREJECT: '5' },
    })
    const ca = readFileSync(caFile, 'utf8')
    const rootUrl = `https://${place.address}:${managementPort}/roots/0`
    let root = ''
    const isServing = async () => {
      root = await download(rootUrl, ca).catch(() => '')
      return root !== ''
    }
    try {
      await waitUntilUp('Pebble', isServing, { needs: [server], timeoutMs: startTimeoutMs })
    } catch (error) {
      await end(server, 'SIGKILL')
      throw new Error(readFileSync(output, 'utf8').split('\n').slice(-20).join('\n'), { cause: error })
    }
    return {
      described: { directoryUrl: `https://${place.address}:${port}/dir`, caFile, root },
      pause: () => void server.kill('SIGSTOP'),
      resume: () => void server.kill('SIGCONT'),
      async stop() {
        await end(server, 'SIGKILL')
        rmSync(directory, { recursive: true, force: true })
      },
    }
  } catch (error) {
    rmSync(directory, { recursive: true, force: true })
    throw error
  }
}

function download(url: string, ca: string): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>()
  get(url, { ca, agent: false }, (response) => void text(response).then(resolve, reject)).on('error', reject)
  return promise
}
