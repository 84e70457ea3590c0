import { useQueryClient } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { CircleUser, LogOut, Monitor, Moon, Sun, UserCog } from 'lucide-react'
import { signOut } from '../api/session.ts'
import { Button } from '../design/button.tsx'
import { Menu, MenuItem, MenuLabel, MenuSeparator } from '../design/menu.tsx'
import { chooseTheme, useThemeChoice } from '../design/theme.ts'
import { say } from '../design/toast.tsx'
import { useHere } from './session.tsx'

const themes = [
  { choice: 'system', label: 'As the system', icon: Monitor },
  { choice: 'light', label: 'Light', icon: Sun },
  { choice: 'dark', label: 'Dark', icon: Moon },
] as const

export function PersonMenu() {
  const { person } = useHere().session
  const chosen = useThemeChoice()
  const navigate = useNavigate()
  const queries = useQueryClient()
  const leave = async () => {
    await signOut()
    queries.clear()
    await navigate({ to: '/sign-in' })
  }
  return (
    <Menu
      align="start"
      trigger={
        <Button look="quiet" wide icon={<CircleUser aria-hidden="true" />}>
          <span>{person.name}</span>
        </Button>
      }
    >
      <MenuItem icon={<UserCog aria-hidden="true" />} onSelect={() => void navigate({ to: '/me' })}>
        Your profile and sessions
      </MenuItem>
      <MenuSeparator />
      <MenuLabel>Theme</MenuLabel>
      {themes.map(({ choice, label, icon: Icon }) => (
        <MenuItem key={choice} icon={<Icon aria-hidden="true" />} onSelect={() => chooseTheme(choice)}>
          {label}
          {choice === chosen && ' ✓'}
        </MenuItem>
      ))}
      <MenuSeparator />
      <MenuItem icon={<LogOut aria-hidden="true" />} onSelect={() => leave().catch((error: Error) => say(error.message))}>
        Sign out
      </MenuItem>
    </Menu>
  )
}
