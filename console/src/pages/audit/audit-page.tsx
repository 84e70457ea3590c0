import { useNavigate, useSearch } from '@tanstack/react-router'
import { Page } from '../../design/layout.tsx'
import { MembersOnly } from '../../shell/members-only.tsx'
import { useAccount } from '../../shell/session.tsx'
import { AuditFilters } from './audit-filters.tsx'
import { AuditTable } from './audit-table.tsx'

/** Audit trail of the account. */
export function AccountAuditPage() {
  return (
    <Page title="Audit trail" about="Who changed something in this account, or tried to, newest first. Reading is not recorded.">
      <MembersOnly>
        <AccountAudit />
      </MembersOnly>
    </Page>
  )
}

function AccountAudit() {
  const account = useAccount()
  const search = useSearch({ from: '/signed-in/in/$account/audit' })
  const navigate = useNavigate({ from: '/in/$account/audit' })
  return (
    <>
      <AuditFilters search={search} onChange={(next) => void navigate({ search: next, replace: true })} />
      <AuditTable of={account} search={search} />
    </>
  )
}

/** The same for the whole installation, with who signed in. */
export function InstallationAuditPage() {
  const search = useSearch({ from: '/signed-in/outside/operate/audit' })
  const navigate = useNavigate({ from: '/operate/audit' })
  return (
    <Page
      title="Sign-ins and audit"
      about="Who signed in, and who changed something in any account or in the installation, or tried to, newest first."
    >
      <AuditFilters search={search} onChange={(next) => void navigate({ search: next, replace: true })} />
      <AuditTable of="installation" search={search} />
    </Page>
  )
}
