/**
 * `systemctl` for tests without systemd: as much of it as docs/how-to/systemd.md uses. It runs the program of a unit as a user without a
 * name, with the directories, settings, capabilities and read-only root that the unit asks for. Filters of system calls are left to
 * `systemd-analyze`, and nothing is started again. A property that it does not know is an error.
 */
import { spawn } from 'node:child_process'
import {
  chmodSync,
  chownSync,
  closeSync,
  existsSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'

const units = '/etc/systemd/system'
const user = 61_184
const state = process.env['TEST_SYSTEMD'] ?? fail('TEST_SYSTEMD is not set')

const applied = ['ExecStart', 'Environment', 'EnvironmentFile', 'StateDirectory', 'StateDirectoryMode', 'CacheDirectory'].concat(
  ['CacheDirectoryMode', 'UMask', 'NoNewPrivileges', 'CapabilityBoundingSet', 'AmbientCapabilities', 'PrivateTmp'],
  ['ProtectSystem', 'ProtectHome', 'KillMode', 'TimeoutStopSec', 'DynamicUser', 'User'],
)
const left = [
  'Restart',
  'RestartSec',
  'OOMPolicy',
  'LimitNOFILE',
  'PrivateDevices',
  'ProtectClock',
  'ProtectControlGroups',
  'ProtectHostname',
].concat(
  [
    'ProtectKernelLogs',
    'ProtectKernelModules',
    'ProtectKernelTunables',
    'ProtectProc',
    'RestrictAddressFamilies',
    'RestrictRealtime',
  ],
  ['RestrictSUIDSGID', 'LockPersonality', 'RemoveIPC', 'SystemCallArchitectures', 'SystemCallFilter', 'SystemCallErrorNumber'],
)

class Service {
  readonly #name: string

  constructor(name: string) {
    this.#name = name
    if (!existsSync(join(units, `${name}.service`))) fail(`Unit ${name}.service could not be found.`)
  }

  start(): void {
    if (this.#pid !== undefined) return
    const properties = this.#properties()
    const one = (property: string) => properties.get(property)?.at(-1) ?? ''
    const capabilities = (property: string) => {
      const names = one(property).split(' ').filter(Boolean)
      return ['-all', ...names.map((each) => `+${each.replace(/^CAP_/, '').toLowerCase()}`)].join(',')
    }
    const writable = [
      ['/var/lib', one('StateDirectory'), one('StateDirectoryMode')],
      ['/var/cache', one('CacheDirectory'), one('CacheDirectoryMode')],
    ] as const
    const directories = writable.map(([parent, name, mode]) => {
      const path = join(parent, name)
      mkdirSync(path, { recursive: true })
      chmodSync(path, Number.parseInt(mode, 8))
      chownSync(path, user, user)
      return path
    })
    const confine = [
      ...directories.map((path) => `mount --bind ${path} ${path}`),
      'mount --options remount,bind,ro /',
      // Remounting / leaves other mounts of the machine writable.
      `awk '$4 ~ /^rw/ && $2 !~ "^(/proc|/sys|/dev|/tmp|${directories.join('|')})" {print $2}' /proc/mounts | xargs --no-run-if-empty --max-args=1 mount --options remount,bind,ro`,
      'mount -t tmpfs tmp /tmp',
      'for home in /root /home; do mount -t tmpfs -o mode=000 home $home; done',
      `cd /; umask ${one('UMask')}`,
      `exec setpriv --reuid ${user} --regid ${user} --clear-groups --no-new-privs --bounding-set=${capabilities('CapabilityBoundingSet')} --inh-caps=${capabilities('AmbientCapabilities')} --ambient-caps=${capabilities('AmbientCapabilities')} ${one('ExecStart')}`,
    ]
    const journal = openSync(join(state, `${this.#name}.journal`), 'a')
    const program = spawn('unshare', ['--mount', 'bash', '-eu', '-c', confine.join('\n')], {
      detached: true,
      stdio: ['ignore', journal, journal],
      env: {
        PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin',
        HOME: '/',
        LANG: 'C.UTF-8',
        ...this.#environment(properties),
      },
    })
    program.unref()
    closeSync(journal)
    writeFileSync(this.#pidFile, String(program.pid))
  }

  async stop(): Promise<void> {
    const pid = this.#pid
    if (pid === undefined) return
    process.kill(pid, 'SIGTERM')
    const seconds = Number(this.#properties().get('TimeoutStopSec')?.at(-1))
    const deadline = performance.now() + seconds * 1_000
    while (this.#pid !== undefined) {
      if (performance.now() > deadline) fail(`${this.#name} did not stop in ${seconds} s`)
      await setTimeout(50)
    }
  }

  status(): void {
    const pid = this.#pid
    console.log(
      `● ${this.#name}.service\n     Active: ${pid === undefined ? 'inactive (dead)' : `active (running)\n   Main PID: ${pid}`}`,
    )
    if (pid === undefined) process.exitCode = 3
  }

  get #pidFile(): string {
    return join(state, `${this.#name}.pid`)
  }

  /** Id of the process if it runs. */
  get #pid(): number | undefined {
    if (!existsSync(this.#pidFile)) return undefined
    const pid = Number(readFileSync(this.#pidFile, 'utf8'))
    try {
      // An ended process may wait for a parent to ask for its exit code.
      return /^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, 'utf8')) ? undefined : pid
    } catch {
      return undefined
    }
  }

  /** The values of each property, drop-ins last. An empty one forgets those before it. */
  #properties(): ReadonlyMap<string, readonly string[]> {
    const dropIns = join(units, `${this.#name}.service.d`)
    const files = [
      join(units, `${this.#name}.service`),
      ...(existsSync(dropIns) ? readdirSync(dropIns).map((name) => join(dropIns, name)) : []),
    ]
    const properties = new Map<string, string[]>()
    for (const file of files) {
      const [, service = ''] = /^\[Service\]$(.*?)(?=^\[|(?![\s\S]))/ms.exec(readFileSync(file, 'utf8')) ?? []
      for (const [, name = '', value = ''] of service.matchAll(/^(\w+)=(.*)$/gm)) {
        if (!applied.includes(name) && !left.includes(name)) fail(`${file}: this systemctl does not know ${name}`)
        properties.set(name, value === '' ? [] : [...(properties.get(name) ?? []), value])
      }
    }
    return properties
  }

  #environment(properties: ReadonlyMap<string, readonly string[]>): Record<string, string> {
    const fromFiles = (properties.get('EnvironmentFile') ?? []).flatMap((path) => {
      const isOptional = path.startsWith('-')
      const file = path.slice(isOptional ? 1 : 0)
      return isOptional && !existsSync(file) ? [] : readFileSync(file, 'utf8').split('\n')
    })
    const lines = [...(properties.get('Environment') ?? []).flatMap((value) => value.split(' ')), ...fromFiles]
    const set = lines.filter((line) => line.includes('=') && !line.startsWith('#'))
    return Object.fromEntries(set.map((line) => [line.slice(0, line.indexOf('=')), line.slice(line.indexOf('=') + 1)]))
  }
}

function fail(message: string): never {
  console.error(message)
  process.exit(1)
}

const [command = '', unit] = process.argv.slice(2).filter((argument) => argument !== '--no-pager' && argument !== '--now')
if (command !== 'daemon-reload') {
  const service = new Service(unit ?? fail(`systemctl ${command} needs a unit`))
  if (command === 'start' || (command === 'enable' && process.argv.includes('--now'))) service.start()
  else if (command === 'stop') await service.stop()
  else if (command === 'restart') {
    await service.stop()
    service.start()
  } else if (command === 'status') service.status()
  else fail(`this systemctl does not know ${process.argv.slice(2).join(' ')}`)
}
