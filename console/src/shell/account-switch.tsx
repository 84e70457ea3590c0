import { useNavigate } from '@tanstack/react-router'
import { ChevronsUpDown } from 'lucide-react'
import { Button } from '../design/button.tsx'
import { Menu, MenuItem, MenuLabel } from '../design/menu.tsx'
import style from './account-switch.module.css'
import { useHere } from './session.tsx'

/** Names the account that the screen is about, and changes it. */
export function AccountSwitch() {
  const { session, account } = useHere()
  const navigate = useNavigate()
  const name = account?.account_name ?? 'Installation'
  if (session.accounts.length <= 1 && account !== undefined) return <div className={style.name}>{label(name)}</div>
  return (
    <Menu
      align="start"
      trigger={
        <Button look="quiet" wide>
          {label(name)}
          <ChevronsUpDown aria-hidden="true" />
        </Button>
      }
    >
      <MenuLabel>Accounts</MenuLabel>
      {session.accounts.map(({ account_id, account_name, role }) => (
        <MenuItem key={account_id} onSelect={() => void navigate({ to: '/in/$account', params: { account: account_id } })}>
          {account_name}
          <span className={style.role}>{role}</span>
        </MenuItem>
      ))}
    </Menu>
  )
}

function label(name: string) {
  return (
    <>
      <img src="/console/icon.svg" alt="" className={style.mark} />
      <span className={style.text}>{name}</span>
    </>
  )
}
