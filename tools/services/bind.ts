/**
 * A real BIND for tests: the authoritative server of zones that accept dynamic updates (RFC 2136) signed with its TSIG key, with its own
 * files, port and process.
 *
 * Law: when `stop` resolves, the process has ended and all files are removed.
 */
import { type ChildProcess, execFile } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { Resolver } from 'node:dns/promises'
import { mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { end, freePort, loopback, type Place, requireProgram, spawnAt, waitUntilUp } from './processes.ts'

const startTimeoutMs = 20_000
const lookupTimeoutMs = 500

export type BindDescription = {
  /** Address and port, for look-ups and updates. */
  readonly server: string
  readonly zones: readonly string[]
  readonly tsig: { readonly name: string; readonly algorithm: 'hmac-sha256'; readonly secret: string }
}

export type Bind = {
  readonly described: BindDescription
  /** Kills it. What it confirmed is on its disk. */
  kill(): Promise<void>
  /** Starts it again after `kill`, on the same files and port. */
  start(): Promise<void>
  /** Stops it without ending it. */
  pause(): void
  resume(): void
  stop(): Promise<void>
}

export type BindOptions = { readonly zones?: readonly string[]; readonly place?: Place; readonly port?: number }

export async function startBind({ zones = ['inlet.test'], place = loopback, port }: BindOptions = {}): Promise<Bind> {
  requireProgram('named', 'bind9')
  const directory = mkdtempSync(join(tmpdir(), 'inlet-bind-'))
  const described: BindDescription = {
    server: `${place.address}:${port ?? (await freePort())}`,
    zones,
    tsig: { name: 'inlet', algorithm: 'hmac-sha256', secret: randomBytes(32).toString('base64') },
  }
  const output = join(directory, 'named.out')
  writeFileSync(join(directory, 'named.conf'), configuration(directory, place.address, described), { mode: 0o600 })
  for (const zone of zones) writeFileSync(join(directory, `${zone}.zone`), zoneFile(zone, place.address))

  let server: ChildProcess | undefined
  const start = async () => {
    const log = openSync(output, 'a')
    const started = spawnAt(place, 'named', ['-g', '-n', '1', '-c', 'named.conf'], {
      cwd: directory,
      stdio: ['ignore', log, log],
    })
    server = started
    try {
      await waitUntilUp('BIND', () => isServing(described), { needs: [started], timeoutMs: startTimeoutMs })
    } catch (error) {
      throw new Error(readFileSync(output, 'utf8').split('\n').slice(-20).join('\n'), { cause: error })
    }
  }
  const kill = async () => {
    if (server !== undefined) await end(server, 'SIGKILL')
  }
  const stop = async () => {
    await kill()
    rmSync(directory, { recursive: true, force: true })
  }
  try {
    await start()
    const [pause, resume] = [() => void server?.kill('SIGSTOP'), () => void server?.kill('SIGCONT')]
    return { described, kill, start, pause, resume, stop }
  } catch (error) {
    await stop()
    throw error
  }
}

/** Changes a zone as its owner would. Each command is one of nsupdate, such as `add www.inlet.test 30 A 192.0.2.1`. */
export async function updateZone({ server, tsig }: BindDescription, commands: readonly string[]): Promise<void> {
  const [address = '', port = ''] = server.split(':')
  const running = promisify(execFile)('nsupdate', ['-t', '5', '-y', `${tsig.algorithm}:${tsig.name}:${tsig.secret}`])
  running.child.stdin?.end(
    [`server ${address} ${port}`, ...commands.map((command) => `update ${command}`), 'send', ''].join('\n'),
  )
  await running
}

/** A resolver that asks this server only. */
export function resolverOf({ server }: Pick<BindDescription, 'server'>): Resolver {
  const resolver = new Resolver({ timeout: lookupTimeoutMs, tries: 2 })
  resolver.setServers([server])
  return resolver
}

async function isServing(described: BindDescription): Promise<boolean> {
  const resolver = resolverOf(described)
  try {
    for (const zone of described.zones) await resolver.resolveSoa(zone)
    return true
  } catch {
    return false
  }
}

function configuration(directory: string, address: string, { server, zones, tsig }: BindDescription): string {
  const port = server.split(':')[1]
  const blocks = zones.map(
    (zone) => `zone "${zone}" { type primary; file "${zone}.zone"; allow-update { key "${tsig.name}"; }; };`,
  )
  return `
key "${tsig.name}" { algorithm ${tsig.algorithm}; secret "${tsig.secret}"; };
# No remote control: ports and keys of several servers would collide.
controls { };
options {
  directory "${directory}";
  listen-on port ${port} { ${address}; };
  listen-on-v6 { none; };
  pid-file none;
  session-keyfile none;
  recursion no;
  notify no;
  dnssec-validation no;
  allow-transfer { any; };
};
${blocks.join('\n')}
`
}

/** Negative answers are kept for a second, so that tests see new names at once. */
function zoneFile(zone: string, address: string): string {
  return `$TTL 30
@ IN SOA ns.${zone}. hostmaster.${zone}. 1 3600 600 86400 1
@ IN NS ns.${zone}.
ns IN A ${address}
`
}
