/** Checks of this machine: its disk, its limits and its ports. */
import type { Stats } from 'node:fs'
import { access, constants, open, readFile, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { baseUrlProblem, ingestAddressesOf, localControlUrl, localIngestUrl } from '#config/addresses.ts'
import type { Config } from '#config/config.ts'
import { assertCanListen } from '#lib/assert-can-listen.ts'
import { errorMessage } from '#lib/error-message.ts'
import { errorCode, systemFiles } from '#lib/files.ts'
import { sendRequest } from '#lib/http.ts'
import type { ListenAddress } from '#lib/option-types.ts'
import { parseCertificates } from '#lib/root-certificate.ts'
import { dayMs } from '#lib/time-units.ts'
import { formatBytes } from '../segments/format.ts'
import { attempt, type Finding, fail, ok, warn } from './finding.ts'

const syncs = 20
/** A disk that takes longer makes each acknowledgement slow. */
const slowSyncMs = 20
const openFilesMin = 4096
const answerMs = 2000
const expirySoonDays = 14

export async function checkMachine(config: Config, now: number): Promise<readonly Finding[]> {
  return [
    ok('node', `Node ${process.versions.node}`),
    ...(await attempt('data directory', 'give this user the right to read and write there, or set INLET_DATA_DIR', () =>
      checkDataDirectory(config),
    )),
    ...(await checkOpenFiles()),
    ...(await checkListeners(config)),
    ...checkBaseUrl(config),
    ...(await checkCertificateFiles(config, now)),
  ]
}

async function checkDataDirectory({ paths, diskReserveBytes }: Config): Promise<readonly Finding[]> {
  let found: Stats
  try {
    found = await stat(paths.data)
  } catch (error) {
    if (errorCode(error) !== 'ENOENT') throw error
    const next = 'start Inlet here (inlet start), or set INLET_DATA_DIR to the directory of an installation'
    return [warn('data directory', `${paths.data} does not exist`, next)]
  }
  if (!found.isDirectory()) return [fail('data directory', `${paths.data} is not a directory`, 'correct INLET_DATA_DIR')]
  await access(paths.data, constants.R_OK | constants.W_OK | constants.X_OK)
  const isOpen = (found.mode & 0o007) !== 0
  const { free_bytes, total_bytes } = await systemFiles.space(paths.data)
  const space = `${formatBytes(free_bytes)} of ${formatBytes(total_bytes)} are free`
  const median = await measureSync(paths.data)
  return [
    isOpen
      ? warn('data directory', `other users can read ${paths.data}`, `chmod -R go= ${paths.data}`)
      : ok('data directory', `${paths.data} can be written to`),
    ...((await stat(paths.restoring).catch(() => undefined)) === undefined
      ? []
      : [fail('restore', 'a restore into the data directory was interrupted: Inlet does not start', 'repeat inlet restore')]),
    ...(median === undefined ? [] : [describeSpeed(median)]),
    median === undefined
      ? fail('disk space', `nothing can be written: ${space}`, 'make room on the disk')
      : free_bytes < diskReserveBytes
        ? fail('disk space', `${space}: ingest refuses data below ${formatBytes(diskReserveBytes)}`, 'make room on the disk')
        : free_bytes < 2 * diskReserveBytes || free_bytes < total_bytes / 20
          ? warn('disk space', space, 'make room on the disk, before ingest refuses data')
          : ok('disk space', space),
  ]
}

function describeSpeed(ms: number): Finding {
  const speed = `a sync takes ${ms.toFixed(1)} ms`
  return ms > slowSyncMs
    ? warn('disk speed', `${speed}: acknowledgements wait for it`, 'use a local SSD for INLET_DATA_DIR')
    : ok('disk speed', speed)
}

/** Returns the median time of a sync, in ms; undefined if the disk is full. The file is removed before anything is written to it. */
async function measureSync(directory: string): Promise<number | undefined> {
  const path = join(directory, `.doctor-${process.pid}`)
  const file = await open(path, 'wx')
  try {
    await rm(path)
    const times: number[] = []
    for (let n = 0; n < syncs; n++) {
      const start = performance.now()
      await file.write(Buffer.alloc(4096))
      await file.datasync()
      times.push(performance.now() - start)
    }
    return times.toSorted((a, b) => a - b)[syncs / 2] ?? 0
  } catch (error) {
    if (['ENOSPC', 'EDQUOT'].includes(errorCode(error) ?? '')) return undefined
    throw error
  } finally {
    await file.close()
  }
}

/** Linux only. Node raises its own limit to the hard one. */
async function checkOpenFiles(): Promise<readonly Finding[]> {
  const limits = await readFile('/proc/self/limits', 'utf8').catch(() => '')
  const hard = /^Max open files\s+\S+\s+(\S+)/m.exec(limits)?.[1]
  if (hard === undefined) return []
  if (hard === 'unlimited' || Number(hard) >= openFilesMin) return [ok('open files', `the limit is ${hard}`)]
  const next = 'raise it (ulimit -Hn, LimitNOFILE of systemd) above the number of endpoints and connections together'
  return [warn('open files', `the limit is ${hard}`, next)]
}

async function checkListeners(config: Config): Promise<readonly Finding[]> {
  const { http, mqtt } = ingestAddressesOf(config)
  const listeners: readonly (readonly [setting: string, address: ListenAddress, url?: string])[] = [
    ['INLET_CONTROL_LISTEN', config.controlListen, localControlUrl(config)],
    ['INLET_NODE_API_LISTEN', config.nodeApiListen],
    ['INLET_INGEST_LISTEN', http, localIngestUrl(config)],
    ...(mqtt === null ? [] : [['INLET_MQTT_LISTEN', mqtt] as const]),
  ]
  return Promise.all(listeners.map(([setting, address, url]) => checkListener(setting, address, url)))
}

/** `url` is where the listener serves `/readyz`, if it does. */
async function checkListener(setting: string, address: ListenAddress, url: string | undefined): Promise<Finding> {
  const where = `${address.host}:${address.port} (${setting})`
  try {
    await assertCanListen(address, setting)
    return ok('port', `${where} is free: nothing runs there`)
  } catch (error) {
    if (errorCode(error) !== 'EADDRINUSE')
      return fail(
        'port',
        `${where}: ${errorMessage(error)}`,
        `set ${setting} to an address of this machine that this user may use`,
      )
  }
  if (url === undefined) return ok('port', `${where} is in use`)
  try {
    const signal = AbortSignal.timeout(answerMs)
    // Its certificate need not be for the address of the listener.
    const response = await sendRequest(`${url}/readyz`, { method: 'GET', headers: {}, signal, acceptsAnyServer: true })
    const { status, reasons } = JSON.parse(response.body.toString()) as { status?: unknown; reasons?: readonly string[] }
    if (response.status === 200 && status === 'ok') return ok('port', `${where} is ready`)
    return fail(
      'port',
      `${where} is not ready: ${reasons?.join('; ') ?? `HTTP ${response.status}`}`,
      'see the log of the process',
    )
  } catch {
    return fail('port', `${where} is in use, and no Inlet answers there`, `stop what listens there, or change ${setting}`)
  }
}

function checkBaseUrl(config: Config): readonly Finding[] {
  const problem = baseUrlProblem(config)
  return problem === undefined ? [] : [warn('base URL', problem, 'set INLET_BASE_URL to an https:// address')]
}

async function checkCertificateFiles(config: Config, now: number): Promise<readonly Finding[]> {
  const files = [
    ['INLET_CONTROL_CERTIFICATE_FILE', config.controlCertificateFile],
    ['INLET_NODE_API_CERTIFICATE_FILE', config.nodeApiCertificateFile],
    ['INLET_TLS_CERTIFICATE_FILE', config.tlsCertificateFile],
  ] as const
  const findings: Finding[] = []
  for (const [setting, file] of files) {
    if (file === null) continue
    const next = `put a certificate chain in PEM there, or change ${setting}`
    findings.push(
      ...(await attempt('certificate', next, async () => {
        const [leaf] = parseCertificates(await readFile(file))
        if (leaf === undefined) return [fail('certificate', `${file} has no certificate`, next)]
        return [describeExpiry(file, Date.parse(leaf.validTo), now, 'renew it')]
      })),
    )
  }
  return findings
}

export function describeExpiry(name: string, notAfter: number, now: number, next: string): Finding {
  const days = Math.floor((notAfter - now) / dayMs)
  if (notAfter <= now) return fail('certificate', `${name} has expired`, next)
  return days < expirySoonDays
    ? warn('certificate', `${name} expires in ${days} days`, next)
    : ok('certificate', `${name} is valid for ${days} days`)
}
