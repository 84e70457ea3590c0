/**
 * Hosts in network namespaces, each connected to this one by a pair of virtual interfaces.
 *
 * This process must be in namespaces of its own (enter.ts), so that nothing of it is seen elsewhere and all of it ends with the process.
 * A host drops what comes from another one by a rule that is looked up before its own addresses, so the sender learns nothing.
 */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { mkdtempSync, readFileSync, readlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { commandAt, end } from '../../../tools/services/processes.ts'
import { until } from '../../support/until.ts'
import { Host } from './host.ts'
import { worsenEnd } from './link-quality.ts'
import type { Heal, LinkQuality, Network } from './network.ts'

const ipv4 = (number: number) => `10.77.0.${number}`
const ipv6 = (number: number) => `fd77::${number}`
const hubNumber = 1
/** Order of the rules: what is cut, the addresses of the host, all other routes. */
const preferences = { cut: 50, local: 100 }

export class NamespaceNetwork implements Network {
  readonly kind = 'namespaces'
  readonly hasNames = true
  readonly hub = new Host('hub', { address: ipv4(hubNumber), enter: [] }, ipv6(hubNumber))
  /** Processes that keep the namespaces open. */
  readonly #holders: ChildProcess[] = []
  readonly #interfaces: string[] = []

  constructor() {
    for (const name of ['ipv4/ip_forward', 'ipv6/conf/all/forwarding']) writeFileSync(`/proc/sys/net/${name}`, '1')
    ip(this.hub, ['link set lo up', ...deferLocalRule])
  }

  async addHost(name: string, number: number): Promise<Host> {
    const holder = spawn('unshare', ['--net', 'sleep', 'infinity'], { stdio: 'ignore' })
    this.#holders.push(holder)
    const namespace = `/proc/${holder.pid}/ns/net`
    await until(`the namespace of ${name}`, () => readlinkSync(namespace) !== readlinkSync('/proc/self/ns/net'))
    const host = new Host(name, { address: ipv4(number), enter: ['nsenter', `--net=${namespace}`] }, ipv6(number))
    const outside = interfaceOf(host)
    ip(this.hub, [
      `link add ${outside} type veth peer name eth0 netns ${holder.pid}`,
      `addr add ${ipv4(hubNumber)}/32 dev ${outside}`,
      `addr add ${ipv6(hubNumber)}/128 dev ${outside} nodad`,
      `link set ${outside} up`,
    ])
    this.#interfaces.push(outside)
    ip(host, [
      'link set lo up',
      `addr add ${ipv4(number)}/32 dev eth0`,
      `addr add ${ipv6(number)}/128 dev eth0 nodad`,
      'link set eth0 up',
      `route add ${ipv4(hubNumber)} dev eth0`,
      `route add default via ${ipv4(hubNumber)}`,
      `-6 route add ${ipv6(hubNumber)} dev eth0`,
      `-6 route add default via ${ipv6(hubNumber)}`,
      ...deferLocalRule,
    ])
    ip(this.hub, [`route add ${ipv4(number)} dev ${outside}`, `-6 route add ${ipv6(number)} dev ${outside}`])
    return host
  }

  /** The file is only seen in the mount namespace of this process. */
  addName(name: string, address: string): void {
    const path = join(mkdtempSync(join(tmpdir(), 'hosts-')), 'hosts')
    writeFileSync(path, `${readFileSync('/etc/hosts', 'utf8')}\n${address} ${name}\n`)
    execFileSync('mount', ['--bind', path, '/etc/hosts'])
  }

  cut(one: Host, other: Host): Heal {
    const heals = [this.drop(one, other), this.drop(other, one)]
    return () => {
      for (const heal of heals) heal()
    }
  }

  drop(host: Host, from: Host): Heal {
    const incoming = host === this.hub ? interfaceOf(from) : 'eth0'
    const rules = from.addresses.map(
      (address) =>
        `${address.includes(':') ? '-6 ' : ''}rule %s pref ${preferences.cut} iif ${incoming} from ${address} blackhole`,
    )
    change(host, 'add', rules)
    return () => change(host, 'del', rules)
  }

  isolate(host: Host): Heal {
    const rulesOf = (incoming: string) =>
      ['', '-6 '].map((family) => `${family}rule %s pref ${preferences.cut} iif ${incoming} blackhole`)
    const changeBoth = (verb: 'add' | 'del') => {
      change(host, verb, rulesOf('eth0'))
      change(this.hub, verb, rulesOf(interfaceOf(host)))
    }
    changeBoth('add')
    return () => changeBoth('del')
  }

  worsen(host: Host, quality: LinkQuality): Heal {
    const heals = [worsenEnd(this.hub, interfaceOf(host), quality), worsenEnd(host, 'eth0', quality)]
    return () => {
      for (const heal of heals) heal()
    }
  }

  /** The next round begins with the same names and rules. */
  async close(): Promise<void> {
    ip(this.hub, [...this.#interfaces.map((name) => `link del ${name}`), ...restoreLocalRule])
    await Promise.all(this.#holders.map((holder) => end(holder, 'SIGKILL')))
  }
}

const families = ['', '-6 ']
const deferLocalRule = families.flatMap((family) => [
  `${family}rule add pref ${preferences.local} lookup local`,
  `${family}rule del pref 0`,
])
const restoreLocalRule = families.flatMap((family) => [
  `${family}rule add pref 0 lookup local`,
  `${family}rule del pref ${preferences.local}`,
])

function interfaceOf({ name }: Host): string {
  return `v-${name}`
}

function change(host: Host, verb: 'add' | 'del', rules: readonly string[]): void {
  ip(
    host,
    rules.map((rule) => rule.replace('%s', verb)),
  )
}

function ip({ name, place }: Host, commands: readonly string[]): void {
  for (const command of commands) {
    try {
      execFileSync(...commandAt(place, 'ip', command.split(' ')), { stdio: ['ignore', 'ignore', 'pipe'] })
    } catch (error) {
      throw new Error(`ip ${command} (${name}) failed`, { cause: error })
    }
  }
}
