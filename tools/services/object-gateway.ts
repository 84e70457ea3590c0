/**
 * A real S3 with STS and IAM for tests: a Ceph RADOS Gateway on a cluster of one monitor and one in-memory storage daemon, with its own
 * files, ports and processes.
 *
 * Law: when `stop` resolves, all processes have ended and all files are removed.
 */
import { type ChildProcess, execFile } from 'node:child_process'
import { randomBytes, randomUUID } from 'node:crypto'
import { existsSync, mkdirSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { commandAt, end, freePort, loopback, type Place, spawnAt, waitUntilUp } from './processes.ts'

const programs = ['ceph', 'ceph-mon', 'ceph-osd', 'radosgw', 'radosgw-admin', 'monmaptool']
const startTimeoutMs = 120_000
const commandTimeoutMs = 60_000
/** Capacity that the cluster reports. Memory is used only for stored objects. */
const capacityBytes = 8 * 2 ** 30

/** A user of the gateway. The account owns what the user creates. */
export type GatewayUser = {
  readonly account: string
  readonly arn: string
  readonly accessKeyId: string
  readonly secretAccessKey: string
}

export type ObjectGateway = {
  /** Endpoint of S3, STS and IAM. */
  readonly url: string
  /** Key for SSE-KMS. */
  readonly kmsKeyArn: string
  /** Creates a user with a new account. An `admin` may create roles and buckets. */
  createUser(name: string, options?: { readonly admin?: boolean }): Promise<GatewayUser>
  stop(): Promise<void>
}

export function missingGatewayPrograms(): readonly string[] {
  const folders = (process.env['PATH'] ?? '').split(':')
  return programs.filter((program) => !folders.some((folder) => existsSync(join(folder, program))))
}

export async function startObjectGateway(place: Place = loopback): Promise<ObjectGateway> {
  const missing = missingGatewayPrograms()
  if (missing.length > 0) {
    throw new Error(
      `the Ceph gateway is not installed (missing: ${missing.join(', ')}): install the Debian packages ceph-mon ceph-osd radosgw ceph-common`,
    )
  }
  const directory = mkdtempSync(join(tmpdir(), 'inlet-gateway-'))
  const running: ChildProcess[] = []
  const stop = async () => {
    // In reverse order: a storage daemon waits for its monitor and would not stop without it.
    for (const child of running.toReversed()) await end(child, 'SIGTERM', 5_000)
    rmSync(directory, { recursive: true, force: true })
  }
  try {
    const [monitorPort, port] = [await freePort(), await freePort()]
    const kmsKeyArn = `arn:aws:kms:us-east-1:444455556666:key/${randomUUID()}`
    const fsid = randomUUID()
    const configuration = join(directory, 'ceph.conf')
    for (const name of ['mon', 'osd', 'gateway', 'run']) mkdirSync(join(directory, name))
    writeFileSync(configuration, cephConf({ directory, fsid, address: place.address, monitorPort, port, kmsKeyArn }))
    const common = ['-c', configuration]
    const options = { cwd: directory, timeout: commandTimeoutMs }
    const run = (program: string, args: readonly string[]) => promisify(execFile)(...commandAt(place, program, args), options)
    const daemon = (program: string, ...args: readonly string[]) => {
      const output = openSync(join(directory, `${program}.out`), 'a')
      const child = spawnAt(place, program, [...common, ...args], { cwd: directory, stdio: ['ignore', output, output] })
      running.push(child)
      return child
    }

    writeFileSync(join(directory, 'keyring'), '')
    const monitor = `[v2:${place.address}:${monitorPort}]`
    await run('monmaptool', ['--create', '--addv', 'a', monitor, '--fsid', fsid, 'monmap'])
    await run('ceph-mon', [...common, '-i', 'a', '--mkfs', '--monmap', 'monmap'])
    daemon('ceph-mon', '-i', 'a', '-f')
    const osd = randomUUID()
    await run('ceph', [...common, '--connect-timeout', '20', 'osd', 'new', osd])
    await run('ceph-osd', [...common, '-i', '0', '--mkfs', '--osd-uuid', osd])
    daemon('ceph-osd', '-i', '0', '-f')
    const gateway = ['-n', 'client.rgw', '--no-mon-config']
    daemon('radosgw', ...gateway, '-f')
    const url = `http://${place.address}:${port}`
    try {
      await waitUntilUp('the Ceph gateway', () => isServing(url), { needs: running, timeoutMs: startTimeoutMs })
    } catch (error) {
      throw new Error(lastLines(join(directory, 'radosgw.out')), { cause: error })
    }

    const administer = (...args: readonly string[]) => run('radosgw-admin', [...common, ...gateway, ...args])
    let accounts = 111_122_220_000
    return {
      url,
      kmsKeyArn,
      async createUser(name, { admin = false } = {}) {
        accounts += 1
        const account = String(accounts)
        const accessKeyId = `AKIA${randomBytes(8).toString('hex').toUpperCase()}`
        const secretAccessKey = randomBytes(20).toString('hex')
        const keys = ['--access-key', accessKeyId, '--secret-key', secretAccessKey]
        const user = ['--tenant', account, '--uid', name]
        await administer('user', 'create', ...user, '--display-name', name, ...keys)
        if (admin) await administer('caps', 'add', ...user, '--caps', 'roles=*')
        return { account, arn: `arn:aws:iam::${account}:user/${name}`, accessKeyId, secretAccessKey }
      },
      stop,
    }
  } catch (error) {
    await stop()
    throw error
  }
}

type Layout = {
  readonly directory: string
  readonly fsid: string
  readonly address: string
  readonly monitorPort: number
  readonly port: number
  readonly kmsKeyArn: string
}

function cephConf({ directory, fsid, address, monitorPort, port, kmsKeyArn }: Layout): string {
  const key = () => randomBytes(32).toString('base64')
  return `
[global]
fsid = ${fsid}
mon_host = [v2:${address}:${monitorPort}]
public_addr = ${address}
cluster_addr = ${address}
keyring = ${directory}/keyring
run_dir = ${directory}/run
admin_socket =
log_file =
# Without keys there is no encryption, which clients and monitors expect by default: they would wait for each other.
auth_cluster_required = none
auth_service_required = none
auth_client_required = none
ms_mon_client_mode = crc secure
ms_client_mode = crc secure
# One copy, on one daemon.
osd_pool_default_size = 1
osd_pool_default_min_size = 1
osd_pool_default_pg_num = 1
osd_pool_default_pgp_num = 1
osd_pool_default_pg_autoscale_mode = off
osd_crush_chooseleaf_type = 0
mon_allow_pool_size_one = true
mon_max_pg_per_osd = 1000
mon_data_avail_crit = 1
[mon]
mon_data = ${directory}/mon
mon_initial_members = a
[osd]
osd_data = ${directory}/osd
osd_objectstore = memstore
memstore_device_bytes = ${capacityBytes}
[client.rgw]
rgw_data = ${directory}/gateway
rgw_frontends = beast endpoint=${address}:${port}
rgw_enable_apis = s3, sts, iam, admin
rgw_s3_auth_use_sts = true
rgw_sts_key = ${randomBytes(8).toString('hex')}
# Both kinds of encryption, over plain HTTP.
rgw_crypt_require_ssl = false
rgw_crypt_default_encryption_key = ${key()}
rgw_crypt_s3_kms_backend = testing
rgw_crypt_s3_kms_encryption_keys = ${kmsKeyArn}=${key()}
`
}

async function isServing(url: string): Promise<boolean> {
  const response = await fetch(url).catch(() => undefined)
  await response?.body?.cancel()
  return response !== undefined
}

function lastLines(path: string): string {
  return existsSync(path) ? readFileSync(path, 'utf8').split('\n').slice(-20).join('\n') : 'the gateway wrote no output'
}
