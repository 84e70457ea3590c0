/** Certificates: renewals, and nodes that serve what clients reject. */
import { writeCertificate } from '../../support/certificates.ts'
import type { Cluster } from '../cluster.ts'
import { baseDomain, controlHost, controlNames, type NodeName, nodesOf, regionOf, regions } from '../layout.ts'
import { listServedCertificates } from '../names.ts'
import { allActive, awaitTruth } from '../truth.ts'
import { type Fault, unnoticed } from './fault.ts'

const hourMs = 3_600_000
/** A name at a time, each after a pause that has grown while the ACME server was away. */
const renewalMsMax = 90_000
/** Longer than control waits for a response of the ACME server. */
const acmeAwayMs = 35_000

export function renewCertificates(): Fault {
  return {
    ...unnoticed,
    kind: 'renew-certificates',
    text: 'renew all certificates',
    begin: renewAll,
  }
}

/** The certificates in use stay, and control tries again by itself. */
export function stopAcme(way: 'stop' | 'cut'): Fault {
  const begin = way === 'stop' ? 'stop the ACME server without ending it' : 'cut control off from the ACME server'
  return {
    ...unnoticed,
    kind: 'stop-acme',
    text: `${begin}, while certificates are due`,
    cutsNetwork: way === 'cut',
    holdMs: acmeAwayMs,
    async begin(cluster) {
      const heal = way === 'stop' ? pauseAcme(cluster) : cutAcme(cluster)
      const untilRenewed = await renewAll(cluster)
      return async () => {
        heal()
        await untilRenewed()
      }
    },
    async check(cluster) {
      const listed = await cluster.operate(['certificates', 'list'])
      return listed.includes('cannot be reached: no response within') ? [] : [`no order has failed: ${listed}`]
    },
  }
}

/** The node has a certificate in files, which its operator did not renew, or made for another name. */
export function spoilCertificate(kind: 'expired-certificate' | 'wrong-certificate', name: NodeName): Fault {
  const isExpired = kind === 'expired-certificate'
  const servedName = isExpired ? `*.${regionOf(name)}.${baseDomain}` : `*.elsewhere.${baseDomain}`
  return {
    ...unnoticed,
    kind,
    text: `start ${name} with ${isExpired ? 'an expired certificate' : 'a certificate for other names'}`,
    parts: { breaks: [name], needs: [...nodesOf(regionOf(name)), 'database', 'dns', 'storage'] },
    truth({ region }, cluster) {
      if (region !== regionOf(name)) return allActive()
      const fault = isExpired ? 'expired at ' : `is for ${servedName}, not for `
      return { status: 'degraded', reasons: [`the certificate of node ${cluster.nodeId(name)} ${fault}`] }
    },
    disturbsClients: true,
    beginsByRestart: true,
    async begin(cluster) {
      const [certificateFile, keyFile] = [cluster.path(`${name}.pem`), cluster.path(`${name}.key`)]
      const now = Date.now()
      const toMs = isExpired ? now - hourMs : now + hourMs
      await writeCertificate({ certificateFile, keyFile }, { name: servedName, fromMs: now - 24 * hourMs, toMs })
      await restart(cluster, name, certificateFile, keyFile)
      return () => restart(cluster, name, '', '')
    },
  }
}

/** Has all certificates ordered again. Returns what waits until all are served, to clients whose connections stayed. */
export async function renewAll(cluster: Cluster): Promise<() => Promise<void>> {
  const before = await listServedCertificates(cluster)
  const dialsBefore = cluster.dials
  const own = cluster.network.hasNames ? [controlHost] : []
  for (const name of [...own, ...regions.map((region) => `*.${region}.${baseDomain}`)]) {
    await cluster.operate(['certificates', 'renew', name])
  }
  const findOld = async () => {
    const served = await listServedCertificates(cluster)
    return [...before].flatMap(([place, old]) =>
      [undefined, old].includes(served.get(place)) ? [`${place} has no new certificate`] : [],
    )
  }
  return async () => {
    const { wrong } = await awaitTruth(findOld, renewalMsMax)
    cluster.troubles.push(...wrong.map((text) => `${renewalMsMax / 1000} s after it could be renewed ${text}`))
    const lost = cluster.dials - dialsBefore
    if (lost > 0) cluster.troubles.push(`clients lost ${lost} connections while certificates were renewed`)
  }
}

async function restart(cluster: Cluster, name: NodeName, certificateFile: string, keyFile: string): Promise<void> {
  await cluster.program(name).stop()
  cluster.program(name).configure({ INLET_TLS_CERTIFICATE_FILE: certificateFile, INLET_TLS_KEY_FILE: keyFile })
  cluster.program(name).start()
  await cluster.untilReady(name)
}

function pauseAcme({ services }: Cluster): () => void {
  services.pebble.pause()
  return () => services.pebble.resume()
}

function cutAcme(cluster: Cluster): () => void {
  const heals = controlNames.map((name) => cluster.network.cut(cluster.host(name), cluster.host('acme')))
  return () => {
    for (const heal of heals) heal()
  }
}
