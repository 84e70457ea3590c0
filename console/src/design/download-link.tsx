import { Download } from 'lucide-react'
import { buttonClass } from './button.tsx'

type DownloadLinkProps = {
  readonly href: string
  /** Its name for those who cannot see what it stands beside. */
  readonly label: string
}

/** Downloads a file from an address that opens it without credentials. */
export function DownloadLink({ href, label }: DownloadLinkProps) {
  return (
    <a href={href} download className={buttonClass} data-look="plain" data-size="small" aria-label={label}>
      <Download aria-hidden="true" />
      Download
    </a>
  )
}
