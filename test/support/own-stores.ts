/**
 * Real S3 servers without roles, from the view of who runs them. Each starts on a port and files of its own, if its program is there.
 * Imports nothing of the program.
 */
import { type ChildProcess, execFile, execFileSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { describe } from 'vitest'
import { end, freePort, loopback, spawnAt, waitUntilUp } from '../../tools/services/processes.ts'

export type OwnStore = {
  readonly url: string
  readonly region: string
  readonly accessKeyId: string
  readonly secretAccessKey: string
  stop(): Promise<void>
}

/** Differences between the stores, as docs/destinations.md describes them. */
export type StoreKind = {
  readonly name: string
  readonly rejectsEncryption?: boolean
  /** It denies access with keys that it does not know, as if they lacked a permission. */
  readonly hidesUnknownKeys?: boolean
  /** It accepts any region in signatures. */
  readonly ignoresRegion?: boolean
  start(): Promise<OwnStore>
}

const described = process.env['INLET_TEST_OBJECT_GATEWAY']

/** Declares a suite for each store. One whose program is missing is skipped, and says so. */
export function describeOwnStores(suite: (kind: StoreKind) => void): void {
  for (const [name, kind] of Object.entries(kinds)) {
    const program = process.env[`INLET_TEST_${name.toUpperCase()}`] ?? findProgram(name)
    const reason = `skipped: ${name} is not on the PATH, and INLET_TEST_${name.toUpperCase()} is not set, see docs/contributing/components.md`
    if (program === undefined) describe.skip(`${name} (${reason})`, () => undefined)
    else describe(name, () => suite({ name, ...kind, start: () => startServer(name, (at) => kind.serve(program, at)) }))
  }
  const gateway = 'ceph without roles'
  if (described === undefined) {
    describe.skip(`${gateway} (skipped: INLET_TEST_OBJECT_GATEWAY is not set, see npm run test:services)`, () => undefined)
  } else {
    const { url, service } = JSON.parse(described)
    const ceph = { url, region: 'us-east-1', ...service, stop: () => Promise.resolve() }
    describe(gateway, () =>
      suite({ name: 'ceph', hidesUnknownKeys: true, ignoresRegion: true, start: () => Promise.resolve(ceph) }),
    )
  }
}

type Place = {
  readonly directory: string
  readonly port: number
  /** For what a server listens on beside S3. */
  readonly sidePort: number
  readonly accessKeyId: string
  readonly secretAccessKey: string
}
type Serving = { readonly child: ChildProcess; readonly region: string; prepare?(): Promise<void> }
type Kind = Omit<StoreKind, 'name' | 'start'> & { serve(program: string, place: Place): Serving }

const kinds: Readonly<Record<string, Kind>> = {
  minio: {
    rejectsEncryption: true,
    ignoresRegion: true,
    serve(program, { directory, port, sidePort, accessKeyId, secretAccessKey }) {
      const args = [
        'server',
        directory,
        '--address',
        `127.0.0.1:${port}`,
        '--console-address',
        `127.0.0.1:${sidePort}`,
        '--quiet',
      ]
      const env = { ...process.env, MINIO_ROOT_USER: accessKeyId, MINIO_ROOT_PASSWORD: secretAccessKey, MINIO_UPDATE: 'off' }
      return { child: spawnAt(loopback, program, args, { env, stdio: 'ignore' }), region: 'us-east-1' }
    },
  },
  garage: {
    serve(program, { directory, port, sidePort, accessKeyId, secretAccessKey }) {
      const path = join(directory, 'garage.toml')
      writeFileSync(path, garageConfiguration({ directory, port, sidePort }), { mode: 0o600 })
      const keys = { GARAGE_DEFAULT_ACCESS_KEY: accessKeyId, GARAGE_DEFAULT_SECRET_KEY: secretAccessKey }
      const args = ['-c', path, 'server', '--single-node', '--default-access-key']
      const child = spawnAt(loopback, program, args, { env: { ...process.env, ...keys }, stdio: 'ignore' })
      const allow = ['-c', path, 'key', 'allow', '--create-bucket', accessKeyId]
      return { child, region: 'garage', prepare: async () => void (await promisify(execFile)(program, allow)) }
    },
  },
  versitygw: {
    serve(program, { directory, port, accessKeyId, secretAccessKey }) {
      const env = { ...process.env, ROOT_ACCESS_KEY: accessKeyId, ROOT_SECRET_KEY: secretAccessKey }
      const args = ['--port', `127.0.0.1:${port}`, '--region', 'eu-test-1', 'posix', directory]
      return { child: spawnAt(loopback, program, args, { env, stdio: 'ignore' }), region: 'eu-test-1' }
    },
  },
}

async function startServer(name: string, serve: (place: Place) => Serving): Promise<OwnStore> {
  const root = mkdtempSync(join(tmpdir(), `inlet-${name}-`))
  const directory = join(root, 'data')
  mkdirSync(directory)
  const [port, sidePort] = [await freePort(), await freePort()]
  // In the form of Garage, which the others accept too.
  const keys = { accessKeyId: `GK${randomBytes(12).toString('hex')}`, secretAccessKey: randomBytes(32).toString('hex') }
  const url = `http://127.0.0.1:${port}`
  const { child, region, prepare } = serve({ directory, port, sidePort, ...keys })
  const stop = async () => {
    await end(child, 'SIGTERM', 5_000)
    rmSync(root, { recursive: true, force: true })
  }
  try {
    // Any response will do: without a signature it is a refusal.
    const isUp = () =>
      fetch(url).then(
        ({ status }) => status < 500,
        () => false,
      )
    await waitUntilUp(name, isUp, { needs: [child], timeoutMs: 30_000 })
    await prepare?.()
  } catch (error) {
    await stop()
    throw error
  }
  return { url, region, ...keys, stop }
}

function garageConfiguration({ directory, port, sidePort }: Pick<Place, 'directory' | 'port' | 'sidePort'>): string {
  return `metadata_dir = "${directory}/meta"
data_dir = "${directory}/data"
db_engine = "sqlite"
replication_factor = 1
rpc_bind_addr = "127.0.0.1:${sidePort}"
rpc_public_addr = "127.0.0.1:${sidePort}"
rpc_secret = "${randomBytes(32).toString('hex')}"
[s3_api]
s3_region = "garage"
api_bind_addr = "127.0.0.1:${port}"
`
}

function findProgram(name: string): string | undefined {
  try {
    return execFileSync('which', [name], { encoding: 'utf8' }).trim()
  } catch {
    return undefined
  }
}
