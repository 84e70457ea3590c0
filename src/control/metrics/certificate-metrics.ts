import { Gauge, type Registry } from 'prom-client'
import type { Clock } from '#lib/clock.ts'
import type { CertificateState } from '#store/naming/certificates.ts'

export type CertificateMetricsOptions = {
  readonly readCertificates: () => Promise<readonly CertificateState[]>
  readonly clock: Clock
}

/** Registers the state of the certificates that control issues. Read on each scrape. */
export function registerCertificateMetrics(registry: Registry, { readCertificates, clock }: CertificateMetricsOptions): void {
  const series = [
    [
      'inlet_certificate_remaining_seconds',
      'seconds until the newest certificate of the name ends; 0 if it has ended or there is none',
      ({ not_after }: CertificateState) => (not_after === null ? 0 : Math.max(0, (Date.parse(not_after) - clock.now()) / 1000)),
    ],
    [
      'inlet_certificate_failed_orders',
      'orders that failed since the newest certificate of the name',
      ({ failures }: CertificateState) => failures,
    ],
  ] as const
  for (const [name, help, read] of series)
    new Gauge({
      name,
      help,
      labelNames: ['name'],
      registers: [registry],
      async collect() {
        this.reset()
        for (const certificate of await readCertificates()) this.set({ name: certificate.name }, read(certificate))
      },
    })
}
