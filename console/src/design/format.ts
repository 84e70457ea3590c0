/** Figures as people read them. Exact values belong into a title beside them. */

const counts = new Intl.NumberFormat('en', { maximumFractionDigits: 0 })
const compact = new Intl.NumberFormat('en', { notation: 'compact', maximumSignificantDigits: 3 })

/** `12,345` */
export function formatCount(count: number): string {
  return counts.format(count)
}

/** `12.3K` */
export function formatCompact(count: number): string {
  return compact.format(count)
}

const byteUnits = ['B', 'kB', 'MB', 'GB', 'TB', 'PB'] as const

/** Decimal units, as S3 and disks count: `64 MB`. */
export function formatBytes(bytes: number): string {
  const power = bytes < 1 ? 0 : Math.min(Math.floor(Math.log10(bytes) / 3), byteUnits.length - 1)
  return `${significant(bytes / 1000 ** power, 3)} ${byteUnits[power]}`
}

/** `85 ms`, `1.4 s`, `12 min`, `3 h`, `5 d` */
export function formatDuration(ms: number): string {
  if (ms < 1000) return `${significant(ms, 2)} ms`
  if (ms < 60_000) return `${significant(ms / 1000, 2)} s`
  if (ms < 3_600_000) return `${Math.round(ms / 60_000)} min`
  if (ms < 86_400_000) return `${significant(ms / 3_600_000, 2)} h`
  return `${Math.round(ms / 86_400_000)} d`
}

/** A share of 1 in per cent: `0.03 %`. Never rounds something to nothing, nor nearly all to all. */
export function formatShare(share: number): string {
  if (share > 0 && share < 0.0001) return '< 0.01 %'
  if (share < 1 && share > 0.9999) return '> 99.99 %'
  return `${significant(share * 100, share > 0.99 ? 4 : 2)} %`
}

function significant(value: number, digits: number): string {
  // Not toPrecision: 120 has two significant digits as 1.2e+2.
  const decimals = value === 0 ? 0 : Math.max(0, digits - 1 - Math.floor(Math.log10(Math.abs(value))))
  return String(Number(value.toFixed(Math.min(decimals, 6))))
}
