import type { QuotaName } from '../../api/accounts.ts'
import { formatBytes, formatCount } from '../../design/format.ts'

type QuotaText = {
  readonly name: QuotaName
  readonly label: string
  readonly hint: string
  readonly format: (value: number) => string
}

/** In the order of the screens. */
export const quotaTexts: readonly QuotaText[] = [
  { name: 'records_per_second', label: 'Records a second', hint: 'Accepted in each region, on average.', format: formatCount },
  { name: 'bytes_per_day', label: 'Bytes a day', hint: 'Of payload, decompressed; the day is that of UTC.', format: formatBytes },
  { name: 'endpoints', label: 'Endpoints', hint: 'That are not deleted.', format: formatCount },
  { name: 'views', label: 'Views', hint: 'With a version that is not archived.', format: formatCount },
  { name: 'view_versions', label: 'Versions of views', hint: 'Of all views, archived ones too.', format: formatCount },
  { name: 'api_keys', label: 'API keys', hint: 'That are not revoked.', format: formatCount },
]
